/* A kernel of CUDA and HIP that needs no header of either. */
#define __global__ __attribute__((global))

#ifdef __AMDGCN__
#define INDEX (__builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + __builtin_amdgcn_workitem_id_x())
#elif defined(__NVPTX__)
#define INDEX (__nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x())
#else
#define INDEX 0
#endif

extern "C" __global__ void saxpy(float a, const float *x, float *y, unsigned count) {
  unsigned i = INDEX;
  if (i < count)
    y[i] += a * x[i];
}

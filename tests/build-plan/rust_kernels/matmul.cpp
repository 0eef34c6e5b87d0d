// The matrix product of examples/rust-kernels in C++, without bounds checks: for clang's HIP and CUDA, without a toolkit.
#define SHARED __attribute__((shared))
#define DEVICE __attribute__((device))
#ifdef __HIP__
DEVICE inline unsigned local_id(int d) { return d ? __builtin_amdgcn_workitem_id_y() : __builtin_amdgcn_workitem_id_x(); }
DEVICE inline unsigned group_id(int d) { return d ? __builtin_amdgcn_workgroup_id_y() : __builtin_amdgcn_workgroup_id_x(); }
DEVICE inline void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
#else
DEVICE inline unsigned local_id(int d) { return d ? __nvvm_read_ptx_sreg_tid_y() : __nvvm_read_ptx_sreg_tid_x(); }
DEVICE inline unsigned group_id(int d) { return d ? __nvvm_read_ptx_sreg_ctaid_y() : __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE inline void barrier() { __syncthreads(); }
#endif

extern "C" __attribute__((global)) void matmul(unsigned count, const float *__restrict a, const float *__restrict b, float *__restrict c) {
  SHARED float a_tile[16][16];
  SHARED float b_tile[16][16];
  unsigned long n = count, x = local_id(0), y = local_id(1);
  unsigned long column = group_id(0) * 16ul + x, row = group_id(1) * 16ul + y;
  float sum = 0;
  for (unsigned long tile = 0; tile < n / 16; tile++) {
    a_tile[y][x] = a[row * n + tile * 16 + x];
    b_tile[y][x] = b[(tile * 16 + y) * n + column];
    barrier();
    for (int k = 0; k < 16; k++)
      sum += a_tile[y][k] * b_tile[k][x];
    barrier();
  }
  c[row * n + column] = sum;
}

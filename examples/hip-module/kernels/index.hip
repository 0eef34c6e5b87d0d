#include "device.h"

/* A function of the device, called by kernels in another file: the device link joins them. */
__device__ unsigned thread_index() {
  return __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() +
         __builtin_amdgcn_workitem_id_x();
}

/* Primitives of NVIDIA's processors, by clang's builtins for NVPTX. */
#pragma once
#pragma clang system_header

namespace offload_gpu {

OFFLOAD_GPU_INLINE unsigned thread_x() { return __nvvm_read_ptx_sreg_tid_x(); }
OFFLOAD_GPU_INLINE unsigned thread_y() { return __nvvm_read_ptx_sreg_tid_y(); }
OFFLOAD_GPU_INLINE unsigned thread_z() { return __nvvm_read_ptx_sreg_tid_z(); }
OFFLOAD_GPU_INLINE unsigned block_x() { return __nvvm_read_ptx_sreg_ctaid_x(); }
OFFLOAD_GPU_INLINE unsigned block_y() { return __nvvm_read_ptx_sreg_ctaid_y(); }
OFFLOAD_GPU_INLINE unsigned block_z() { return __nvvm_read_ptx_sreg_ctaid_z(); }
OFFLOAD_GPU_INLINE unsigned threads_x() { return __nvvm_read_ptx_sreg_ntid_x(); }
OFFLOAD_GPU_INLINE unsigned threads_y() { return __nvvm_read_ptx_sreg_ntid_y(); }
OFFLOAD_GPU_INLINE unsigned threads_z() { return __nvvm_read_ptx_sreg_ntid_z(); }
OFFLOAD_GPU_INLINE unsigned blocks_x() { return __nvvm_read_ptx_sreg_nctaid_x(); }
OFFLOAD_GPU_INLINE unsigned blocks_y() { return __nvvm_read_ptx_sreg_nctaid_y(); }
OFFLOAD_GPU_INLINE unsigned blocks_z() { return __nvvm_read_ptx_sreg_nctaid_z(); }

OFFLOAD_GPU_INLINE void block_barrier() { __syncthreads(); }
OFFLOAD_GPU_INLINE void warp_barrier(lane_mask mask) { __nvvm_bar_warp_sync(mask); }
OFFLOAD_GPU_INLINE void block_fence() { __nvvm_membar_cta(); }
OFFLOAD_GPU_INLINE void device_fence() { __nvvm_membar_gl(); }
OFFLOAD_GPU_INLINE void system_fence() { __nvvm_membar_sys(); }

OFFLOAD_GPU_INLINE int lanes() { return 32; }
OFFLOAD_GPU_INLINE unsigned lane() { return __nvvm_read_ptx_sreg_laneid(); }
OFFLOAD_GPU_INLINE lane_mask active_lanes() {
#if __has_builtin(__nvvm_activemask)
  return __nvvm_activemask();
#else
  unsigned lanes;
  __asm__ volatile("activemask.b32 %0;" : "=r"(lanes));
  return lanes;
#endif
}
OFFLOAD_GPU_INLINE lane_mask ballot(lane_mask mask, bool vote) { return __nvvm_vote_ballot_sync(mask, vote); }
OFFLOAD_GPU_INLINE bool any(lane_mask mask, bool vote) { return __nvvm_vote_any_sync(mask, vote); }
OFFLOAD_GPU_INLINE bool all(lane_mask mask, bool vote) { return __nvvm_vote_all_sync(mask, vote); }

/* The last operand of `shfl`: in bits 8 to 12 the bits of a lane that name its group, below the last lane (for `up`
 * the first one) that is read. */
OFFLOAD_GPU_INLINE int clamp_of(int width, int last) {
  return (32 - width) << 8 | last;
}
OFFLOAD_GPU_INLINE int shuffle(lane_mask mask, int value, int source, int width) {
  return __nvvm_shfl_sync_idx_i32(mask, value, source, clamp_of(width, 31));
}
OFFLOAD_GPU_INLINE int shuffle_up(lane_mask mask, int value, unsigned delta, int width) {
  return __nvvm_shfl_sync_up_i32(mask, value, delta, clamp_of(width, 0));
}
OFFLOAD_GPU_INLINE int shuffle_down(lane_mask mask, int value, unsigned delta, int width) {
  return __nvvm_shfl_sync_down_i32(mask, value, delta, clamp_of(width, 31));
}
OFFLOAD_GPU_INLINE int shuffle_xor(lane_mask mask, int value, int bits, int width) {
  return __nvvm_shfl_sync_bfly_i32(mask, value, bits, clamp_of(width, 31));
}

OFFLOAD_GPU_INLINE float fast_sin(float x) { return __nvvm_sin_approx_f(x); }
OFFLOAD_GPU_INLINE float fast_cos(float x) { return __nvvm_cos_approx_f(x); }
OFFLOAD_GPU_INLINE float fast_exp2(float x) { return __nvvm_ex2_approx_f(x); }
OFFLOAD_GPU_INLINE float fast_log2(float x) { return __nvvm_lg2_approx_f(x); }
OFFLOAD_GPU_INLINE float fast_divide(float x, float y) { return __nvvm_div_approx_f(x, y); }
OFFLOAD_GPU_INLINE float reciprocal_root(float x) { return __nvvm_rsqrt_approx_f(x); }

OFFLOAD_GPU_INLINE long long cycles() { return __nvvm_read_ptx_sreg_clock64(); }

} // namespace offload_gpu

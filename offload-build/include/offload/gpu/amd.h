/* Primitives of AMD's processors, by clang's builtins for AMDGPU. */
#pragma once
#pragma clang system_header

namespace offload_gpu {

OFFLOAD_GPU_INLINE unsigned thread_x() { return __builtin_amdgcn_workitem_id_x(); }
OFFLOAD_GPU_INLINE unsigned thread_y() { return __builtin_amdgcn_workitem_id_y(); }
OFFLOAD_GPU_INLINE unsigned thread_z() { return __builtin_amdgcn_workitem_id_z(); }
OFFLOAD_GPU_INLINE unsigned block_x() { return __builtin_amdgcn_workgroup_id_x(); }
OFFLOAD_GPU_INLINE unsigned block_y() { return __builtin_amdgcn_workgroup_id_y(); }
OFFLOAD_GPU_INLINE unsigned block_z() { return __builtin_amdgcn_workgroup_id_z(); }
/* clang reads it where the code object version has it: an implicit argument (5 and later) or the dispatch packet. */
OFFLOAD_GPU_INLINE unsigned threads_x() { return __builtin_amdgcn_workgroup_size_x(); }
OFFLOAD_GPU_INLINE unsigned threads_y() { return __builtin_amdgcn_workgroup_size_y(); }
OFFLOAD_GPU_INLINE unsigned threads_z() { return __builtin_amdgcn_workgroup_size_z(); }
/* The packet's grid size counts threads, in every code object version. No macro names the version, and only 5 and
 * later have the number of blocks as an argument. */
OFFLOAD_GPU_INLINE unsigned blocks_x() { return __builtin_amdgcn_grid_size_x() / threads_x(); }
OFFLOAD_GPU_INLINE unsigned blocks_y() { return __builtin_amdgcn_grid_size_y() / threads_y(); }
OFFLOAD_GPU_INLINE unsigned blocks_z() { return __builtin_amdgcn_grid_size_z() / threads_z(); }

OFFLOAD_GPU_INLINE void block_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
OFFLOAD_GPU_INLINE void warp_barrier(lane_mask) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
OFFLOAD_GPU_INLINE void block_fence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
OFFLOAD_GPU_INLINE void device_fence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
OFFLOAD_GPU_INLINE void system_fence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, ""); }

OFFLOAD_GPU_INLINE int lanes() {
  /* Older releases have no such builtin, or leave it to the code generator; newer ones have no such macro. */
#if __clang_major__ < 20
  return __AMDGCN_WAVEFRONT_SIZE;
#else
  return __builtin_amdgcn_wavefrontsize();
#endif
}
OFFLOAD_GPU_INLINE unsigned lane() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)); }

/* 33: not equal. Unlike `ballot_w64`, clang 16 has it for warps of 32 lanes, too. */
OFFLOAD_GPU_INLINE lane_mask votes(bool vote) {
  return __builtin_amdgcn_uicmp(vote, 0, 33);
}
OFFLOAD_GPU_INLINE lane_mask active_lanes() { return votes(true); }
OFFLOAD_GPU_INLINE lane_mask ballot(lane_mask mask, bool vote) { return votes(vote) & mask; }
OFFLOAD_GPU_INLINE bool any(lane_mask mask, bool vote) { return (votes(vote) & mask) != 0; }
/* Masks may name lanes that do not exist or have left. */
OFFLOAD_GPU_INLINE bool all(lane_mask mask, bool vote) { return (votes(!vote) & mask) == 0; }

/* The value of that lane of the warp. */
OFFLOAD_GPU_INLINE int value_of(int value, int source) {
#if defined(__GFX10__) || defined(__GFX11__)
  /* There `ds_bpermute` stays in each half of a warp of 64 lanes. */
  if (lanes() == 64) {
    int found = value;
    for (int i = 0; i < 64; i++) {
      int other = __builtin_amdgcn_readlane(value, i);
      found = i == source ? other : found;
    }
    return found;
  }
#endif
  return __builtin_amdgcn_ds_bpermute(source * 4, value);
}
OFFLOAD_GPU_INLINE int shuffle(lane_mask, int value, int source, int width) {
  int group = lane() & ~(width - 1);
  return value_of(value, group + (source & (width - 1)));
}
OFFLOAD_GPU_INLINE int shuffle_up(lane_mask, int value, unsigned delta, int width) {
  int own = lane(), source = own - int(delta);
  return value_of(value, source < (own & ~(width - 1)) ? own : source);
}
OFFLOAD_GPU_INLINE int shuffle_down(lane_mask, int value, unsigned delta, int width) {
  int own = lane(), place = (own & (width - 1)) + int(delta);
  return value_of(value, place >= width ? own : own + int(delta));
}
OFFLOAD_GPU_INLINE int shuffle_xor(lane_mask, int value, int bits, int width) {
  int own = lane(), source = own ^ bits;
  return value_of(value, source >= ((own + width) & ~(width - 1)) ? own : source);
}

/* Angles are in turns there. */
OFFLOAD_GPU_INLINE float fast_sin(float x) { return __builtin_amdgcn_sinf(__builtin_amdgcn_fractf(x * 0.15915494309f)); }
OFFLOAD_GPU_INLINE float fast_cos(float x) { return __builtin_amdgcn_cosf(__builtin_amdgcn_fractf(x * 0.15915494309f)); }
OFFLOAD_GPU_INLINE float fast_exp2(float x) { return __builtin_exp2f(x); }
OFFLOAD_GPU_INLINE float fast_log2(float x) { return __builtin_log2f(x); }
OFFLOAD_GPU_INLINE float fast_divide(float x, float y) { return x * __builtin_amdgcn_rcpf(y); }
/* `v_rsq_f32` has no denormals. */
OFFLOAD_GPU_INLINE float reciprocal_root(float x) { return 1.0f / __builtin_sqrtf(x); }

OFFLOAD_GPU_INLINE long long cycles() { return __builtin_readcyclecounter(); }

} // namespace offload_gpu

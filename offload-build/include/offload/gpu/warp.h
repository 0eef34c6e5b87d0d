/* Votes and shuffles of a warp, and `warpSize`. */
#pragma once
#pragma clang system_header

namespace offload_gpu {
#if defined(__HIP__)
/* The processor and its options decide: no constant to a compiler that reads the source once for several. */
struct warp_size {
  __device__ __forceinline__ operator int() const { return lanes(); }
  warp_size(const warp_size &) = delete;
  warp_size &operator=(const warp_size &) = delete;
};
} // namespace offload_gpu
extern const __device__ offload_gpu::warp_size warpSize;
namespace offload_gpu {
#else
} // namespace offload_gpu
constexpr int warpSize = 32;
namespace offload_gpu {
#endif

/* A mask of 32 bits would leave out half of a warp of 64 lanes. */
template <typename Mask> OFFLOAD_GPU_INLINE lane_mask checked(Mask mask) {
  static_assert(sizeof(Mask) >= sizeof(lane_mask),
                "masks have 64 bits on AMD GPUs: write ~0ull, __activemask() or an unsigned long long");
  return lane_mask(mask);
}

enum class Way { Index, Up, Down, Xor };

template <Way way> OFFLOAD_GPU_INLINE int moved(lane_mask mask, int value, int which, int width) {
  return way == Way::Index  ? shuffle(mask, value, which, width)
         : way == Way::Up   ? shuffle_up(mask, value, unsigned(which), width)
         : way == Way::Down ? shuffle_down(mask, value, unsigned(which), width)
                            : shuffle_xor(mask, value, which, width);
}

/* Values of up to 8 bytes, as words of 4. */
template <Way way, typename Value> OFFLOAD_GPU_INLINE Value moved_words(lane_mask mask, Value value, int which, int width) {
  static_assert(sizeof(Value) <= 8 && __is_trivially_copyable(Value),
                "shuffles move plain values of up to 8 bytes");
  int words[2] = {0, 0};
  __builtin_memcpy(words, &value, sizeof(Value));
  words[0] = moved<way>(mask, words[0], which, width);
  if (sizeof(Value) > 4)
    words[1] = moved<way>(mask, words[1], which, width);
  __builtin_memcpy(&value, words, sizeof(Value));
  return value;
}
} // namespace offload_gpu

#define OFFLOAD_GPU_SHUFFLE(name, way, Which)                                                                          \
  template <typename Mask, typename Value>                                                                             \
  OFFLOAD_GPU_INLINE Value name##_sync(Mask mask, Value value, Which which, int width = warpSize) {                    \
    return offload_gpu::moved_words<offload_gpu::Way::way>(offload_gpu::checked(mask), value, int(which), width);      \
  }                                                                                                                    \
  template <typename Value> OFFLOAD_GPU_INLINE Value name(Value value, Which which, int width = warpSize) {            \
    return offload_gpu::moved_words<offload_gpu::Way::way>(offload_gpu::active_lanes(), value, int(which), width);     \
  }
OFFLOAD_GPU_SHUFFLE(__shfl, Index, int)
OFFLOAD_GPU_SHUFFLE(__shfl_up, Up, unsigned)
OFFLOAD_GPU_SHUFFLE(__shfl_down, Down, unsigned)
OFFLOAD_GPU_SHUFFLE(__shfl_xor, Xor, int)
#undef OFFLOAD_GPU_SHUFFLE

OFFLOAD_GPU_INLINE offload_gpu::lane_mask __activemask() { return offload_gpu::active_lanes(); }
OFFLOAD_GPU_INLINE unsigned __lane_id() { return offload_gpu::lane(); }

#define OFFLOAD_GPU_VOTE(type, name, vote)                                                                             \
  template <typename Mask> OFFLOAD_GPU_INLINE type name##_sync(Mask mask, int predicate) {                             \
    return offload_gpu::vote(offload_gpu::checked(mask), predicate != 0);                                              \
  }                                                                                                                    \
  OFFLOAD_GPU_INLINE type name(int predicate) {                                                                        \
    return offload_gpu::vote(offload_gpu::active_lanes(), predicate != 0);                                             \
  }
OFFLOAD_GPU_VOTE(offload_gpu::lane_mask, __ballot, ballot)
OFFLOAD_GPU_VOTE(int, __any, any)
OFFLOAD_GPU_VOTE(int, __all, all)
#undef OFFLOAD_GPU_VOTE

OFFLOAD_GPU_INLINE void __syncwarp(offload_gpu::lane_mask mask = offload_gpu::lane_mask(~0ull)) {
  offload_gpu::warp_barrier(mask);
}

/* Functions that AMD's and NVIDIA's processors each do in their own way: all other files use these. */
#pragma once
#pragma clang system_header

namespace offload_gpu {

/* A bit for each lane of a warp: masks of votes and shuffles. */
#if defined(__HIP__)
typedef unsigned long long lane_mask;
#else
typedef unsigned lane_mask;
#endif

OFFLOAD_GPU_PRIMITIVE unsigned thread_x();
OFFLOAD_GPU_PRIMITIVE unsigned thread_y();
OFFLOAD_GPU_PRIMITIVE unsigned thread_z();
OFFLOAD_GPU_PRIMITIVE unsigned block_x();
OFFLOAD_GPU_PRIMITIVE unsigned block_y();
OFFLOAD_GPU_PRIMITIVE unsigned block_z();
/* Threads of a block. */
OFFLOAD_GPU_PRIMITIVE unsigned threads_x();
OFFLOAD_GPU_PRIMITIVE unsigned threads_y();
OFFLOAD_GPU_PRIMITIVE unsigned threads_z();
/* Blocks of the grid. */
OFFLOAD_GPU_PRIMITIVE unsigned blocks_x();
OFFLOAD_GPU_PRIMITIVE unsigned blocks_y();
OFFLOAD_GPU_PRIMITIVE unsigned blocks_z();

/* Waits for the block; memory is as all of its threads left it. */
OFFLOAD_GPU_PRIMITIVE void block_barrier();
OFFLOAD_GPU_PRIMITIVE void warp_barrier(lane_mask mask);
OFFLOAD_GPU_PRIMITIVE void block_fence();
OFFLOAD_GPU_PRIMITIVE void device_fence();
OFFLOAD_GPU_PRIMITIVE void system_fence();

OFFLOAD_GPU_PRIMITIVE int lanes();
OFFLOAD_GPU_PRIMITIVE unsigned lane();
OFFLOAD_GPU_PRIMITIVE lane_mask active_lanes();
/* Votes of the lanes of `mask`. */
OFFLOAD_GPU_PRIMITIVE lane_mask ballot(lane_mask mask, bool vote);
OFFLOAD_GPU_PRIMITIVE bool any(lane_mask mask, bool vote);
OFFLOAD_GPU_PRIMITIVE bool all(lane_mask mask, bool vote);
/* Values of other lanes in groups of `width`, a power of two: of a lane of the group, of the lane `delta` before or
 * after, of the lane whose number differs by `bits`. A lane outside of the group is one's own. */
OFFLOAD_GPU_PRIMITIVE int shuffle(lane_mask mask, int value, int source, int width);
OFFLOAD_GPU_PRIMITIVE int shuffle_up(lane_mask mask, int value, unsigned delta, int width);
OFFLOAD_GPU_PRIMITIVE int shuffle_down(lane_mask mask, int value, unsigned delta, int width);
OFFLOAD_GPU_PRIMITIVE int shuffle_xor(lane_mask mask, int value, int bits, int width);

/* Instructions that are fast and less exact. */
OFFLOAD_GPU_PRIMITIVE float fast_sin(float x);
OFFLOAD_GPU_PRIMITIVE float fast_cos(float x);
OFFLOAD_GPU_PRIMITIVE float fast_exp2(float x);
OFFLOAD_GPU_PRIMITIVE float fast_log2(float x);
OFFLOAD_GPU_PRIMITIVE float fast_divide(float x, float y);
OFFLOAD_GPU_PRIMITIVE float reciprocal_root(float x);

OFFLOAD_GPU_PRIMITIVE long long cycles();

} // namespace offload_gpu

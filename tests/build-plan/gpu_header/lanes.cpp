/* Runs the shuffles and votes of amd.h lane by lane on the CPU: builtins of the processor are functions of this file. */
#include <cstdio>
#include <initializer_list>

static int lane_now, values[64], votes_of[64];
static unsigned long long running;

#define __AMDGCN_WAVEFRONT_SIZE LANES
#define __builtin_amdgcn_wavefrontsize() LANES
#define __builtin_amdgcn_mbcnt_lo(mask, start) 0
#define __builtin_amdgcn_mbcnt_hi(mask, low) lane_now
/* Each half of a warp by itself, as on the processors for which amd.h does without. */
#define __builtin_amdgcn_ds_bpermute(address, value) bpermute(address)
#define __builtin_amdgcn_readlane(value, lane) values[lane]
#define __builtin_amdgcn_uicmp(vote, other, how) compare(vote)
#define __builtin_amdgcn_workitem_id_x() 0
#define __builtin_amdgcn_workitem_id_y() 0
#define __builtin_amdgcn_workitem_id_z() 0
#define __builtin_amdgcn_workgroup_id_x() 0
#define __builtin_amdgcn_workgroup_id_y() 0
#define __builtin_amdgcn_workgroup_id_z() 0
#define __builtin_amdgcn_workgroup_size_x() 64
#define __builtin_amdgcn_workgroup_size_y() 1
#define __builtin_amdgcn_workgroup_size_z() 1
#define __builtin_amdgcn_grid_size_x() 640
#define __builtin_amdgcn_grid_size_y() 1
#define __builtin_amdgcn_grid_size_z() 1
#define __builtin_amdgcn_fence(order, scope) (void)0
#define __builtin_amdgcn_s_barrier() (void)0
#define __builtin_amdgcn_wave_barrier() (void)0
#define __builtin_amdgcn_sinf(x) (x)
#define __builtin_amdgcn_cosf(x) (x)
#define __builtin_amdgcn_fractf(x) (x)
#define __builtin_amdgcn_rcpf(x) (x)
#define OFFLOAD_GPU_INLINE static inline __attribute__((unused))

static int bpermute(int address) {
  int source = address / 4;
#ifdef HALVES
  source = (source & 31) | (lane_now & 32);
#endif
  return values[source & (LANES - 1)];
}

/* The lanes that run whose vote is as this lane's argument says, which is its own vote or the contrary. */
static unsigned long long compare(bool vote) {
  bool contrary = vote != (votes_of[lane_now] != 0);
  unsigned long long found = 0;
  for (int i = 0; i < LANES; i++)
    if ((running >> i & 1) && (votes_of[i] != 0) != contrary)
      found |= 1ull << i;
  return found;
}

namespace offload_gpu {
typedef unsigned long long lane_mask;
}
#include <offload/gpu/amd.h>

static int failures;
static void check(const char *what, int width, int argument, long long found, long long expected) {
  if (found != expected && failures++ < 10)
    printf("%s, width %d, argument %d, lane %d: found %lld, expected %lld\n", what, width, argument, lane_now, found,
           expected);
}

int main() {
  using namespace offload_gpu;
  for (int i = 0; i < LANES; i++)
    values[i] = 1000 + i;
  for (int width = 1; width <= LANES; width *= 2)
    for (int argument = 0; argument < LANES; argument++)
      for (lane_now = 0; lane_now < LANES; lane_now++) {
        /* As the CUDA Programming Guide defines them: groups of `width` lanes, numbered from 0 in each. */
        int own = values[lane_now], first = lane_now / width * width, place = lane_now % width;
        check("index", width, argument, shuffle(0, own, argument, width), 1000 + first + argument % width);
        check("up", width, argument, shuffle_up(0, own, argument, width),
              place < argument ? own : own - argument);
        check("down", width, argument, shuffle_down(0, own, argument, width),
              place + argument >= width ? own : own + argument);
        /* Earlier groups may be read, later ones not. */
        int other = lane_now ^ argument;
        check("xor", width, argument, shuffle_xor(0, own, argument, width),
              other >= first + width ? own : 1000 + other);
      }
  const unsigned long long every = ~0ull >> (64 - LANES);
  const unsigned long long sets[] = {0, 1, every, every & 0x5555555555555555, every & 0xffff0000ffff0000};
  for (unsigned long long yes : sets)
    for (unsigned long long mask : {~0ull, every & 0x00ff00ff00ff00ff})
      for (unsigned long long runs : {every, every & 0x0fff0fff0fff0fff}) {
        running = runs;
        for (int i = 0; i < LANES; i++)
          votes_of[i] = yes >> i & 1;
        for (lane_now = 0; lane_now < LANES; lane_now++) {
          bool vote = votes_of[lane_now] != 0;
          check("ballot", 0, 0, ballot(mask, vote), yes & mask & runs);
          check("any", 0, 0, any(mask, vote), (yes & mask & runs) != 0);
          check("all", 0, 0, all(mask, vote), (~yes & mask & runs) == 0);
        }
      }
  check("blocks", 0, 0, blocks_x(), 10);
  return failures != 0;
}

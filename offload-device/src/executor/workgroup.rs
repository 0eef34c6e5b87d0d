//! Workgroups: run work-items from barrier to barrier, as fibers of one thread.

use std::cell::Cell;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::{ptr, thread};

use super::Settings;
use super::failure::{Barrier, Cause, Divergence, Failure, Stop};
use super::fiber::{Fiber, Outcome, Stacks, Suspend};
use super::order::Random;
use crate::description::Description;
use crate::grid::{Grid, place};

/// A launch that all its threads share.
pub(super) struct Launch<'a> {
    pub(super) kernel: &'a Description,
    pub(super) grid: Grid,
    /// Number of work-items in a workgroup, from 1 to 1024.
    pub(super) items: u32,
    pub(super) settings: Settings,
    /// Bytes of memory that a workgroup shares.
    pub(super) shared: usize,
    pub(super) work_item: &'a (dyn Fn(FiberState) + Sync),
    /// Number of workgroups, at least 1.
    pub(super) groups: u64,
    pub(super) next_group: AtomicU64,
    pub(super) failed: AtomicBool,
}

impl Launch<'_> {
    /// Returns true if a workgroup has failed: all others stop.
    pub(super) fn failed(&self) -> bool {
        self.failed.load(Relaxed)
    }
}

/// Place of the running work-item, and pointers to its workgroup and fiber.
pub struct FiberState {
    item: [u32; 3],
    /// Its lifetime is not `'static`: the pointer is valid as long as the work-item runs.
    workgroup: *const Workgroup<'static>,
    suspend: *const Suspend<Barrier>,
}

impl FiberState {
    fn workgroup(&self) -> &Workgroup<'_> {
        // SAFETY: `Workgroup::run_items` makes this state of a reference for one work-item, and the safety requirements of
        // `Item::new` end its use with that work-item.
        unsafe { &*self.workgroup }
    }

    pub(crate) fn local_id(&self, dimension: u32) -> u32 {
        self.item[dimension as usize]
    }

    pub(crate) fn group_id(&self, dimension: u32) -> u32 {
        self.workgroup().place[dimension as usize]
    }

    pub(crate) fn local_size(&self, dimension: u32) -> u32 {
        self.workgroup().launch.grid.items[dimension as usize]
    }

    pub(crate) fn group_count(&self, dimension: u32) -> u32 {
        self.workgroup().launch.grid.groups[dimension as usize]
    }

    #[track_caller]
    pub(crate) fn barrier(&self) {
        // The panic of this work-item ends the launch. A fiber that is suspended in a destructor could not be unwound.
        if thread::panicking() {
            return;
        }
        // SAFETY: as in `workgroup`. An `Item` stays on its thread, so that this is the running fiber's.
        unsafe { &*self.suspend }.suspend(Location::caller());
    }

    pub(crate) fn shared(&self) -> *mut u8 {
        self.workgroup().shared
    }
}

/// Shared memory is a multiple of this, which is aligned as on GPUs.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Block(#[expect(dead_code, reason = "shared memory is accessed by its address")] [u8; 16]);

/// Memory that a thread uses for one workgroup after another.
pub(super) struct Resources {
    stacks: Stacks,
    shared: Vec<Block>,
    order: Vec<u32>,
}

impl Resources {
    pub(super) fn new(launch: &Launch<'_>) -> Self {
        Self {
            stacks: Stacks::new(launch.settings.stack_size),
            shared: Vec::new(),
            order: Vec::new(),
        }
    }
}

/// Runs a workgroup to its end, or until any workgroup has failed.
pub(super) fn run_workgroup(
    launch: &Launch<'_>,
    index: u64,
    resources: &mut Resources,
) -> Result<(), Failure> {
    let Resources {
        stacks,
        shared,
        order,
    } = resources;
    let mut random = Random::new(launch.settings.seed, index);
    order.clear();
    order.extend(0..launch.items);
    random.shuffle(order);
    // Uninitialized memory of a GPU contains anything; this pattern is a conspicuous number in each type.
    shared.clear();
    shared.resize(
        launch.shared.div_ceil(size_of::<Block>()),
        Block([0xA5; 16]),
    );

    let workgroup = Workgroup {
        launch,
        place: place(index, launch.grid.groups),
        shared: shared.as_mut_ptr().cast(),
        order,
        started: Cell::new(0),
        running: Cell::new(0),
        first: Cell::new(None),
        divergence: Cell::new(None),
    };
    let mut waiting = Vec::new();
    let mut result = workgroup.start_items(stacks, &mut waiting);
    while result.is_ok() && !waiting.is_empty() && !workgroup.stopped() {
        random.shuffle(&mut waiting);
        result = workgroup.resume_items(stacks, &mut waiting);
    }
    let cause = result
        .err()
        .or_else(|| workgroup.divergence.get().map(Cause::Divergence));
    let failure = cause.map(|cause| Failure {
        kernel: launch.kernel.name,
        index,
        group: workgroup.place,
        seed: launch.settings.seed,
        cause,
    });
    // Fibers cannot be unwound where a panic aborts: there the report ends the process before that.
    if cfg!(panic = "abort") {
        if let Some(failure) = failure {
            failure.report();
        }
        return Ok(());
    }
    for item in waiting {
        stacks.give_back(item.fiber.into_stack());
    }
    failure.map_or(Ok(()), Err)
}

/// A workgroup that runs, as its fibers see it.
struct Workgroup<'a> {
    launch: &'a Launch<'a>,
    place: [u32; 3],
    shared: *mut u8,
    /// Order in which work-items start.
    order: &'a [u32],
    /// Number of work-items that have started.
    started: Cell<usize>,
    running: Cell<u32>,
    /// Work-item that was the first to stop since the last barrier.
    first: Cell<Option<Stop>>,
    divergence: Cell<Option<Divergence>>,
}

/// A work-item that waits at a barrier.
struct Waiting<'a> {
    item: u32,
    fiber: Fiber<'a, Barrier>,
}

impl<'a> Workgroup<'a> {
    /// Runs each work-item to its first barrier or its end.
    ///
    /// A fiber runs work-items one after another until one waits. So a kernel without barriers needs one fiber.
    fn start_items<'b>(
        &'b self,
        stacks: &mut Stacks,
        waiting: &mut Vec<Waiting<'b>>,
    ) -> Result<(), Cause> {
        while self.started.get() < self.order.len() && !self.stopped() {
            let size = self.launch.settings.stack_size;
            let stack = stacks
                .take()
                .map_err(|error| Cause::Stack { size, error })?;
            // SAFETY: `run_workgroup` consumes or drops all of `waiting` before `self`; another fiber is consumed below.
            let mut fiber = unsafe { Fiber::new(stack, |suspend| self.run_items(suspend)) };
            let outcome = fiber.resume();
            let item = self.running.get();
            match outcome {
                Outcome::Suspended(barrier) => {
                    self.stop_item(item, Some(barrier));
                    waiting.push(Waiting { item, fiber });
                }
                Outcome::Returned => stacks.give_back(fiber.into_stack()),
                Outcome::Panicked(payload) => {
                    stacks.give_back(fiber.into_stack());
                    return Err(Cause::Panic {
                        item: self.item_place(item),
                        payload,
                    });
                }
            }
        }
        Ok(())
    }

    /// Runs each waiting work-item to its next barrier or its end, in the order of the list.
    fn resume_items(
        &self,
        stacks: &mut Stacks,
        waiting: &mut Vec<Waiting<'_>>,
    ) -> Result<(), Cause> {
        self.first.set(None);
        let mut returned = 0;
        for Waiting { item, fiber } in &mut *waiting {
            self.running.set(*item);
            match fiber.resume() {
                Outcome::Suspended(barrier) => self.stop_item(*item, Some(barrier)),
                Outcome::Returned => returned += 1,
                Outcome::Panicked(payload) => {
                    return Err(Cause::Panic {
                        item: self.item_place(*item),
                        payload,
                    });
                }
            }
            if self.stopped() {
                return Ok(());
            }
        }
        // Either all have returned or all wait: otherwise they diverged.
        if returned > 0 {
            for item in waiting.drain(..) {
                stacks.give_back(item.fiber.into_stack());
            }
        }
        Ok(())
    }

    /// Runs work-items, in a fiber.
    fn run_items(&self, suspend: &Suspend<Barrier>) {
        while let Some(&item) = self.order.get(self.started.get()) {
            self.started.set(self.started.get() + 1);
            self.running.set(item);
            (self.launch.work_item)(FiberState {
                item: self.item_place(item),
                workgroup: ptr::from_ref(self).cast(),
                suspend,
            });
            self.stop_item(item, None);
            if self.stopped() {
                return;
            }
        }
    }

    /// Records that a work-item waits at a barrier or has returned, and whether another one did otherwise.
    fn stop_item(&self, item: u32, barrier: Option<Barrier>) {
        let stop = Stop {
            item: self.item_place(item),
            barrier,
        };
        match self.first.get() {
            None => self.first.set(Some(stop)),
            Some(first) if first.barrier == barrier => {}
            Some(first) => self.divergence.set(Some(Divergence::new(first, stop))),
        }
    }

    /// Returns true if this workgroup or another one has failed.
    fn stopped(&self) -> bool {
        self.divergence.get().is_some() || self.launch.failed()
    }

    fn item_place(&self, item: u32) -> [u32; 3] {
        place(item.into(), self.launch.grid.items)
    }
}

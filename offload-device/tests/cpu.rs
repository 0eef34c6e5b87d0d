//! Tests the executor of the CPU: order, barriers, shared memory, failures and settings.
#![allow(clippy::unwrap_used, reason = "kernels are not tests for clippy")]

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::thread::{self, ThreadId};

use offload_device::cpu::{Grid, Settings};
use offload_device::{Global, Item, kernel};

const SETTINGS: Settings = Settings {
    seed: 7,
    threads: 1,
    stack_size: 256 << 10,
};
const HINT: &str = "hint: OFFLOAD_DEVICE_SEED=0x7 repeats this order of work-items";

/// Returns what a launch panics with.
fn failure(settings: Settings, launch: impl FnOnce()) -> Box<dyn Any + Send> {
    catch_unwind(AssertUnwindSafe(|| settings.apply(launch))).expect_err("the launch fails")
}

/// Returns the message that a launch panics with.
fn failure_message(launch: impl FnOnce()) -> String {
    *failure(SETTINGS, launch)
        .downcast::<String>()
        .expect("a message")
}

const BARRIER_LINE: u32 = line!() + 6;

/// Has a barrier that only the first `n` work-items reach.
#[kernel]
fn divergent(item: &Item, n: u32) {
    if item.local_id(0) < n as usize {
        item.barrier();
    }
}

#[test]
fn reports_a_work_item_that_returns_before_a_barrier() {
    // One work-item waits, so that the message does not depend on the order.
    let message = failure_message(|| divergent::run(Grid::new([1, 3], 2), 1));
    let barrier = format!("{}:{BARRIER_LINE}:14", file!());
    assert_eq!(
        message,
        format!(
            "kernel `divergent`, workgroup [0, 0, 0]: work-item [0, 0, 0] waits at the barrier at {barrier}, \
             work-item [1, 0, 0] has returned\n{HINT}"
        )
    );
}

#[test]
fn accepts_a_barrier_that_all_or_none_reach() {
    divergent::run(Grid::new(3, 32), 32);
    divergent::run(Grid::new(3, 32), 0);
}

const TWO_BARRIERS_LINE: u32 = line!() + 7;

#[allow(clippy::if_same_then_else, reason = "each barrier is another one")]
/// Has a barrier for even and another for odd work-items, after one that all reach.
#[kernel]
fn two_barriers(item: &Item) {
    item.barrier();
    if item.local_id(1) == 0 {
        item.barrier()
    } else {
        item.barrier()
    }
}

#[test]
fn reports_work_items_at_different_barriers() {
    let message = failure_message(|| two_barriers::run(Grid::new(1, [1, 2])));
    let waits = |y: u32, line: u32| {
        let file = file!();
        format!("work-item [0, {y}, 0] waits at the barrier at {file}:{line}:14")
    };
    let (even, odd) = (
        waits(0, TWO_BARRIERS_LINE + 1),
        waits(1, TWO_BARRIERS_LINE + 3),
    );
    let expected = |one: &str, other: &str| {
        format!("kernel `two_barriers`, workgroup [0, 0, 0]: {one}, {other}\n{HINT}")
    };
    assert!(
        message == expected(&even, &odd) || message == expected(&odd, &even),
        "{message}"
    );
}

/// Passes a barrier more often than others do.
#[kernel]
fn loops(item: &Item) {
    for _ in 0..=item.local_id(0) {
        item.barrier();
    }
}

#[test]
fn reports_a_work_item_that_returns_from_a_loop_of_barriers() {
    let message = failure_message(|| loops::run(Grid::new(1, 2)));
    assert!(
        message.contains("work-item [1, 0, 0] waits at the barrier at "),
        "{message}"
    );
    assert!(
        message.contains(", work-item [0, 0, 0] has returned\n"),
        "{message}"
    );
}

/// Writes after the end.
#[kernel]
fn writes_outside(item: &Item, y: Global<u32>) {
    if item.global_id(0) == 5 {
        y.set(item, 1);
    }
}

/// Reads after the end.
#[kernel]
fn reads_outside(item: &Item, x: &[u32]) {
    if item.global_id(0) == 5 {
        assert_eq!(x[item.local_id(0) + 9], 0);
    }
}

#[test]
fn reports_an_index_out_of_bounds() {
    let at = "workgroup [1, 0, 0], work-item [2, 0, 0]: index out of bounds: the len";
    let mut y = [0; 4];
    let message = failure_message(|| writes_outside::run(Grid::new(2, 3), Global::new(&mut y)));
    assert_eq!(
        message,
        format!("kernel `writes_outside`, {at}gth is 4 but the index is 5\n{HINT}")
    );
    let message = failure_message(|| reads_outside::run(Grid::new(2, 3), &[0; 8]));
    assert_eq!(
        message,
        format!("kernel `reads_outside`, {at} is 8 but the index is 11\n{HINT}")
    );
}

/// Calls each method with an index out of bounds.
#[kernel]
fn each_method_outside(item: &Item, method: u32, y: Global<u32>) {
    match method {
        0 => y.set(item, 0),
        1 => drop(y.get(item)),
        // SAFETY: one work-item.
        2 => unsafe { y.write(1, 0) },
        // SAFETY: one work-item.
        3 => drop(unsafe { y.read(1) }),
        4 => drop(y.atomic_add(1, 0)),
        5 => drop(y.atomic_exchange(1, 0)),
        6 => drop(y.atomic_load(1)),
        7 => y.atomic_store(1, 0),
        8 => drop(y.atomic_min(1, 0)),
        9 => drop(y.atomic_max(1, 0)),
        10 => drop(y.atomic_and(1, 0)),
        11 => drop(y.atomic_or(1, 0)),
        12 => drop(y.atomic_xor(1, 0)),
        _ => drop(y.atomic_compare_exchange(1, 0, 0)),
    }
}

#[test]
fn checks_the_index_in_each_method() {
    for method in 0..14 {
        let grid = if method < 2 {
            Grid::new(1, [1, 2])
        } else {
            Grid::new(1, 1)
        };
        let message =
            failure_message(|| each_method_outside::run(grid, method, Global::new(&mut [0])));
        assert!(
            message.contains("the length is 1 but the index is 1"),
            "method {method}: {message}"
        );
    }
}

/// Names a fourth dimension.
#[kernel]
fn fourth_dimension(item: &Item) {
    item.local_size(3);
}

#[test]
fn rejects_a_fourth_dimension() {
    let message = failure_message(|| fourth_dimension::run(Grid::new(1, 1)));
    assert!(
        message.contains(": expected dimension 0, 1 or 2, found 3\n"),
        "{message}"
    );
}

/// Panics with a number.
#[kernel]
fn panics_with_a_number(item: &Item) {
    item.barrier();
    panic_any(42_u64);
}

#[test]
fn keeps_the_payload_of_a_panic() {
    let payload = failure(SETTINGS, || panics_with_a_number::run(Grid::new(4, 4)));
    assert_eq!(payload.downcast_ref(), Some(&42_u64));
}

static CREATED: AtomicU32 = AtomicU32::new(0);
static DROPPED: AtomicU32 = AtomicU32::new(0);

struct Counted;
impl Counted {
    fn new() -> Self {
        CREATED.fetch_add(1, SeqCst);
        Self
    }
}
impl Drop for Counted {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, SeqCst);
    }
}

/// Fails in some work-item, after all have a value.
#[kernel]
fn fails_with_values(item: &Item, how: u32) {
    let _value = Counted::new();
    let _boxed = Box::new(Counted::new());
    item.barrier();
    match how {
        0 if item.local_id(0) == 3 => panic!("expected"),
        1 if item.local_id(0) == 3 => return,
        _ => {}
    }
    item.barrier();
}

#[test]
fn drops_the_values_of_waiting_work_items() {
    for how in 0..3 {
        let result =
            catch_unwind(|| SETTINGS.apply(|| fails_with_values::run(Grid::new(1, 64), how)));
        assert_eq!(result.is_err(), how < 2);
        assert_eq!(CREATED.swap(0, SeqCst), 128, "how {how}");
        assert_eq!(DROPPED.swap(0, SeqCst), 128, "how {how}");
    }
}

/// Waits for others when it is dropped, as a guard does that must leave together with them.
struct Meets<'a>(&'a Item);
impl Drop for Meets<'_> {
    fn drop(&mut self) {
        self.0.barrier();
    }
}

/// Panics with such a guard, while the others wait at another barrier.
#[kernel]
fn barrier_in_destructor(item: &Item, panics: u32) {
    let _meets = Meets(item);
    item.barrier();
    assert!(item.local_id(0) as u32 != panics, "expected");
    item.barrier();
}

#[test]
fn ignores_barriers_while_unwinding() {
    barrier_in_destructor::run(Grid::new(2, 8), 99);
    let message = failure_message(|| barrier_in_destructor::run(Grid::new(2, 8), 5));
    assert!(
        message.contains("work-item [5, 0, 0]: expected\n"),
        "{message}"
    );
}

/// Stores the order in which work-items of a workgroup start, and that in which they leave a barrier.
#[kernel]
fn orders(item: &Item<[u32; 2]>, y: Global<[u32; 2]>) {
    let next = item.shared();
    let step = |phase: usize| {
        // SAFETY: no work-item of a workgroup runs beside another on the CPU.
        unsafe {
            let step = (*next)[phase].wrapping_sub(0xA5A5_A5A5);
            (*next)[phase] = (*next)[phase].wrapping_add(1);
            step
        }
    };
    let first = step(0);
    item.barrier();
    y.set(item, [first, step(1)]);
}

fn orders_of(settings: Settings, groups: u32, items: u32) -> Vec<[u32; 2]> {
    let mut y = vec![[u32::MAX; 2]; (groups * items) as usize];
    settings.apply(|| orders::run(Grid::new(groups, items), Global::new(&mut y)));
    y
}

#[test]
fn permutes_work_items_by_seed_workgroup_and_phase() {
    let y = orders_of(SETTINGS, 4, 64);
    let mut all = BTreeSet::new();
    for group in y.chunks(64) {
        for phase in 0..2 {
            let order: Vec<u32> = group.iter().map(|steps| steps[phase]).collect();
            let sorted: BTreeSet<u32> = order.iter().copied().collect();
            assert_eq!(sorted, (0..64).collect(), "a permutation");
            // A rotation keeps the distance of neighbors.
            let distances: BTreeSet<u32> = order
                .windows(2)
                .map(|pair| pair[0].wrapping_sub(pair[1]) % 64)
                .collect();
            assert!(distances.len() > 10, "{order:?}");
            all.insert(order);
        }
    }
    assert_eq!(all.len(), 8, "different in each workgroup and phase");
    let shifts: BTreeSet<u32> = y
        .iter()
        .map(|[first, second]| second.wrapping_sub(*first) % 64)
        .collect();
    assert!(
        shifts.len() > 10,
        "the second phase is not a rotation of the first: {shifts:?}"
    );
    assert_eq!(
        orders_of(
            Settings {
                threads: 3,
                ..SETTINGS
            },
            4,
            64
        ),
        y,
        "the same with more threads"
    );
    assert_ne!(
        orders_of(
            Settings {
                seed: 8,
                ..SETTINGS
            },
            4,
            64
        ),
        y,
        "different with another seed"
    );
}

/// Stores the first and last bytes of shared memory, and overwrites them.
#[kernel]
fn reads_shared(item: &Item<[u8; 1000]>, y: Global<[u8; 2]>) {
    // SAFETY: one work-item in a workgroup; the memory is initialized on the CPU.
    unsafe {
        y.set(item, [(*item.shared())[0], (*item.shared())[999]]);
        *item.shared() = [1; 1000];
    }
}

#[test]
fn fills_shared_memory_for_each_workgroup() {
    let mut y = [[0; 2]; 20];
    SETTINGS.apply(|| reads_shared::run(Grid::new(20, 1), Global::new(&mut y)));
    assert_eq!(y, [[0xA5; 2]; 20]);
}

/// Uses more shared memory than a GPU has.
#[kernel]
fn shares_much(item: &Item<[u128; 1 << 16]>, y: Global<usize>) {
    // SAFETY: one work-item in a workgroup.
    unsafe { (*item.shared())[(1 << 16) - 1] = 5 }
    y.set(item, item.shared().addr() % 16);
}

#[test]
fn aligns_shared_memory_of_any_size() {
    let mut y = [1; 2];
    shares_much::run(Grid::new(2, 1), Global::new(&mut y));
    assert_eq!(y, [0; 2]);
}

static STACKS: Mutex<BTreeMap<usize, u32>> = Mutex::new(BTreeMap::new());

/// Counts work-items by the address of a local value, which is that of their stack.
#[kernel]
fn stacks(item: &Item, waits: u8) {
    let local = 0u8;
    *STACKS
        .lock()
        .unwrap()
        .entry(std::hint::black_box(&raw const local).addr())
        .or_insert(0) += 1;
    if waits == 1 {
        item.barrier();
    }
}

#[test]
fn uses_stacks_again() {
    SETTINGS.apply(|| stacks::run(Grid::new(50, 100), 0));
    let counts: Vec<u32> = std::mem::take(&mut *STACKS.lock().unwrap())
        .into_values()
        .collect();
    assert_eq!(counts, [5000], "without barriers, one stack");
    SETTINGS.apply(|| stacks::run(Grid::new(50, 100), 1));
    let counts: Vec<u32> = std::mem::take(&mut *STACKS.lock().unwrap())
        .into_values()
        .collect();
    assert_eq!(
        counts, [50; 100],
        "with barriers, one stack for each work-item"
    );
}

static RAN: AtomicU32 = AtomicU32::new(0);

/// Counts work-items.
#[kernel]
fn counts(_item: &Item) {
    RAN.fetch_add(1, SeqCst);
}

#[test]
fn runs_nothing_for_a_size_of_zero() {
    for grid in [
        Grid::new(0, 5),
        Grid::new(5, 0),
        Grid::new([5, 0], 1),
        Grid::new([u32::MAX, u32::MAX, 0], 1),
    ] {
        counts::run(grid);
    }
    counts::run(Grid::new([u32::MAX; 3], [5, 0]));
    assert_eq!(RAN.load(SeqCst), 0);
}

/// Allows 96 work-items in a workgroup.
#[kernel(threads = 96)]
fn limited(item: &Item, total: Global<u32>) {
    item.barrier();
    total.atomic_add(0, 1);
}

/// Has no limit of its own.
#[kernel]
fn unlimited(item: &Item, total: Global<u32>) {
    item.barrier();
    total.atomic_add(0, 1);
}

/// Has grids of one dimension.
#[kernel]
fn line(item: &Item<(), 1>, y: Global<[u32; 6]>) {
    let places = [0, 1, 2].map(|dimension| item.global_id(dimension) as u32);
    let sizes = [0, 1, 2].map(|dimension| item.global_size(dimension) as u32);
    assert_eq!([1, 2].map(|dimension| item.local_id(dimension)), [0, 0]);
    y.set(item, [places, sizes].concat().try_into().unwrap());
}

/// Has grids of two dimensions.
#[kernel]
fn plane(item: &Item<(), 2>, y: Global<usize>) {
    y.set(item, item.global_index());
}

#[test]
fn refuses_grids_of_more_dimensions_than_the_item_has() {
    let mut y = [[0; 6]; 12];
    line::run(Grid::new(3, 4), Global::new(&mut y));
    for (index, found) in (0..).zip(y) {
        assert_eq!(found, [index, 0, 0, 12, 1, 1]);
    }
    for (grid, found) in [
        (Grid::new([1, 2], 4), "[1, 2, 1] workgroups of [4, 1, 1]"),
        (Grid::new(1, [2, 1, 3]), "[1, 1, 1] workgroups of [2, 1, 3]"),
    ] {
        assert_eq!(
            failure_message(|| line::run(grid, Global::new(&mut y))),
            format!(
                "kernel `line` has an `Item<_, 1>`: expected one work-item in the other dimensions, found {found}"
            )
        );
    }
    let mut y = [0; 12];
    plane::run(Grid::new([3, 2], [1, 2]), Global::new(&mut y));
    assert_eq!(y[..], (0..12).collect::<Vec<_>>());
    assert_eq!(
        failure_message(|| plane::run(Grid::new([3, 2, 2], 1), Global::new(&mut y))),
        "kernel `plane` has an `Item<_, 2>`: expected one work-item in the other dimensions, found [3, 2, 2] workgroups of [1, 1, 1]"
    );
    assert_eq!(
        [line::DIMENSIONS, plane::DIMENSIONS, limited::DIMENSIONS],
        [1, 2, 3]
    );
}

#[test]
fn limits_the_size_of_a_workgroup() {
    let mut total = [0];
    limited::run(Grid::new(2, [48, 2]), Global::new(&mut total));
    unlimited::run(Grid::new(2, [64, 4, 4]), Global::new(&mut total));
    assert_eq!(total, [192 + 2048]);
    assert_eq!(
        failure_message(|| limited::run(Grid::new(1, 97), Global::new(&mut total))),
        "kernel `limited` has `threads = 96`: expected at most 96 work-items in a workgroup, found [97, 1, 1]"
    );
    assert_eq!(
        failure_message(|| unlimited::run(Grid::new(1, [5, 5, 41]), Global::new(&mut total))),
        "kernel `unlimited`: expected at most 1024 work-items in a workgroup, found [5, 5, 41]"
    );
    assert_eq!(
        failure_message(|| unlimited::run(
            Grid::new([1 << 31, 1 << 31, 1], 4),
            Global::new(&mut total)
        )),
        "kernel `unlimited`: expected less than 2^64 work-items, found [2147483648, 2147483648, 1] workgroups"
    );
    assert_eq!(total, [192 + 2048]);
}

/// Runs a kernel in a kernel.
#[kernel]
fn nests(_item: &Item, y: Global<u8>) {
    nested::run(Grid::new(1, 1), y);
}

/// Owns an element of the outer kernel's memory, if it may run.
#[kernel]
fn nested(item: &Item, y: Global<u8>) {
    y.set(item, 1);
}

#[test]
fn rejects_a_kernel_that_runs_a_kernel() {
    for threads in [1, 2] {
        let settings = Settings {
            threads,
            ..SETTINGS
        };
        let mut y = [0; 4];
        let message = failure(settings, || {
            nests::run(Grid::new(4, 1), Global::new(&mut y))
        });
        let message = message.downcast_ref::<String>().unwrap();
        assert!(
            message.contains(": kernel `nested`: a kernel cannot run a kernel\n"),
            "{message}"
        );
        assert_eq!(y, [0; 4]);
    }
    // The thread of the launch can run kernels again.
    nested::run(Grid::new(1, 1), Global::new(&mut [0]));
}

static STOPS: AtomicU32 = AtomicU32::new(0);

/// Panics in one work-item; the other workgroups loop over a barrier until they are stopped.
#[kernel]
fn panics_beside_others(item: &Item) {
    STOPS.fetch_add(1, SeqCst);
    if item.group_id(0) == 1 {
        // Two of the others run.
        while STOPS.load(SeqCst) < 3 {
            thread::yield_now();
        }
        panic!("expected");
    }
    loop {
        item.barrier();
    }
}

#[test]
fn stops_other_workgroups_after_a_failure() {
    let settings = Settings {
        threads: 3,
        ..SETTINGS
    };
    let message = failure(settings, || {
        panics_beside_others::run(Grid::new(1_000_000, 1))
    });
    let message = message.downcast_ref::<String>().unwrap();
    assert!(message.starts_with(
        "kernel `panics_beside_others`, workgroup [1, 0, 0], work-item [0, 0, 0]: expected\n"
    ));
    assert_eq!(STOPS.load(SeqCst), 3);
}

static TOGETHER: std::sync::Barrier = std::sync::Barrier::new(2);

/// Panics in two workgroups at the same time.
#[kernel]
fn panics_together(item: &Item) {
    TOGETHER.wait();
    panic!("in workgroup {}", item.group_id(0));
}

#[test]
fn reports_the_first_of_the_workgroups_that_fail() {
    for _ in 0..20 {
        let settings = Settings {
            threads: 2,
            ..SETTINGS
        };
        let message = failure(settings, || panics_together::run(Grid::new(2, 1)));
        let message = message.downcast_ref::<String>().unwrap();
        assert!(message.contains("in workgroup 0\n"), "{message}");
    }
}

static THREADS: Mutex<BTreeMap<String, u32>> = Mutex::new(BTreeMap::new());
static ONE_THREAD: AtomicBool = AtomicBool::new(false);

/// Counts workgroups by their thread; without `ONE_THREAD`, the first four wait for each other.
#[kernel]
fn threads(item: &Item) {
    static FOUR: std::sync::Barrier = std::sync::Barrier::new(4);
    let id: ThreadId = thread::current().id();
    *THREADS
        .lock()
        .unwrap()
        .entry(format!("{id:?}"))
        .or_insert(0) += 1;
    if !ONE_THREAD.load(SeqCst) && item.group_id(0) < 4 {
        FOUR.wait();
    }
}

#[test]
fn spreads_workgroups_over_threads() {
    Settings {
        threads: 4,
        ..SETTINGS
    }
    .apply(|| threads::run(Grid::new(100, 1)));
    let counts = std::mem::take(&mut *THREADS.lock().unwrap());
    assert_eq!((counts.len(), counts.values().sum::<u32>()), (4, 100));
    ONE_THREAD.store(true, SeqCst);
    SETTINGS.apply(|| threads::run(Grid::new(100, 1)));
    let counts = std::mem::take(&mut *THREADS.lock().unwrap());
    assert_eq!(
        counts,
        BTreeMap::from([(format!("{:?}", thread::current().id()), 100)])
    );
}

/// Runs a kernel with barriers when it is dropped.
struct RunsKernel<'a>(&'a mut Vec<[u32; 2]>);
impl Drop for RunsKernel<'_> {
    fn drop(&mut self) {
        assert!(thread::panicking());
        *self.0 = orders_of(SETTINGS, 2, 64);
    }
}

#[test]
fn runs_kernels_while_the_thread_panics() {
    let mut y = Vec::new();
    let result = catch_unwind(AssertUnwindSafe(|| {
        let _runs = RunsKernel(&mut y);
        panic!("expected");
    }));
    assert!(result.is_err());
    assert_eq!(y, orders_of(SETTINGS, 2, 64));
}

/// Uses at least `kib` KiB of stack, more in a debug build, with a barrier at the deepest place.
#[kernel]
fn recursive(item: &Item, kib: u32) {
    fn deep(item: &Item, left: u32) -> u8 {
        let block = std::hint::black_box([left as u8; 1024]);
        if left == 0 {
            item.barrier()
        } else {
            deep(item, left - 1);
        }
        std::hint::black_box(block)[0]
    }
    deep(item, kib);
}

#[test]
fn gives_work_items_stacks_of_the_set_size() {
    Settings {
        stack_size: 16 << 20,
        ..SETTINGS
    }
    .apply(|| recursive::run(Grid::new(1, 4), 1 << 10));
}

#[test]
fn reports_a_stack_that_cannot_be_allocated() {
    // Without and with an overflow when pages around it are added.
    for stack_size in [1 << 50, usize::MAX] {
        let settings = Settings {
            stack_size,
            ..SETTINGS
        };
        let message = failure(settings, || recursive::run(Grid::new(1, 1), 1));
        let message = message.downcast_ref::<String>().unwrap();
        let start = format!(
            "kernel `recursive`, workgroup [0, 0, 0]: cannot allocate a work-item's stack of {} KiB: ",
            stack_size / 1024
        );
        assert!(message.starts_with(&start), "{message}");
        assert!(
            message.contains("\nhint: decrease OFFLOAD_DEVICE_THREADS or OFFLOAD_DEVICE_STACK\n"),
            "{message}"
        );
    }
}

/// Applies settings in which other work-items of its thread run.
#[kernel]
fn applies_settings(item: &Item) {
    let seed = 100 + item.local_id(0) as u64;
    Settings { seed, ..SETTINGS }.apply(|| item.barrier());
}

#[test]
fn keeps_the_settings_of_the_host_after_a_launch() {
    SETTINGS.apply(|| {
        applies_settings::run(Grid::new(1, 3));
        let message = catch_unwind(|| divergent::run(Grid::new(1, 2), 1)).unwrap_err();
        let message = message.downcast_ref::<String>().unwrap();
        assert!(message.contains(HINT), "{message}");
    });
}

/// Runs in a process of its own, with variables: see `reads_settings_from_variables`.
#[test]
#[ignore = "a part of another test"]
fn prints_settings() {
    let (file, line) = (file!(), line!() + 2);
    println!("{:?} launch at {file}:{line}:5", Settings::from_variables());
    divergent::run(Grid::new(1, 2), 1);
}

#[test]
fn reads_settings_from_variables() {
    let output = |variables: &[(&str, &str)]| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "prints_settings", "--ignored", "--nocapture"]);
        for name in [
            "OFFLOAD_DEVICE_SEED",
            "OFFLOAD_DEVICE_THREADS",
            "OFFLOAD_DEVICE_STACK",
        ] {
            command.env_remove(name);
        }
        let output = command.envs(variables.iter().copied()).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let all = [
        ("OFFLOAD_DEVICE_SEED", "0x1f"),
        ("OFFLOAD_DEVICE_THREADS", "3"),
        ("OFFLOAD_DEVICE_STACK", "128"),
    ];
    let text = output(&all);
    assert!(
        text.contains("Settings { seed: 31, threads: 3, stack_size: 131072 }"),
        "{text}"
    );
    assert!(
        text.contains("hint: OFFLOAD_DEVICE_SEED=0x1f repeats this order of work-items"),
        "{text}"
    );
    let (_, launch) = text.split_once(" launch at ").unwrap();
    let place = launch.lines().next().unwrap();
    assert!(
        text.contains(&format!("panicked at {place}:\nkernel `divergent`")),
        "{text}"
    );
    let processors = thread::available_parallelism().unwrap();
    let text = output(&[]);
    assert!(
        text.contains(&format!(
            "Settings {{ seed: 16715949, threads: {processors}, stack_size: 262144 }}"
        )),
        "{text}"
    );
    for (name, value, expected) in [
        (
            "OFFLOAD_DEVICE_SEED",
            "x7",
            "expected a number of at least 0, found `x7`",
        ),
        (
            "OFFLOAD_DEVICE_THREADS",
            "0",
            "expected a number of at least 1, found `0`",
        ),
        (
            "OFFLOAD_DEVICE_STACK",
            "15",
            "expected a number of at least 16, found `15`",
        ),
    ] {
        let text = output(&[(name, value)]);
        assert!(text.contains(&format!("{name}: {expected}")), "{text}");
    }
}

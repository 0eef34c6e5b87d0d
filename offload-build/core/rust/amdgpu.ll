; Functions that Rust does not have, for AMD's GPUs. The build links them into crates of kernels, where they are inlined; the crate
; `offload-device` declares them. LLVM 19 and later read this text.
;
; `amdgpu.bc` is this text as bitcode, for builds without clang: made in this folder by `llvm-as amdgpu.ll` of LLVM 19, which later
; releases read. The data layout is that of LLVM 19, too: later releases bring it up to date.
source_filename = "amdgpu.ll"
target datalayout = "e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9"
target triple = "amdgcn-amd-amdhsa"

declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workitem.id.y()
declare i32 @llvm.amdgcn.workitem.id.z()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workgroup.id.y()
declare i32 @llvm.amdgcn.workgroup.id.z()
declare ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
declare void @llvm.amdgcn.s.barrier()
declare void @llvm.trap()
declare float @llvm.sqrt.f32(float)
declare double @llvm.sqrt.f64(double)
declare float @llvm.fma.f32(float, float, float)
declare double @llvm.fma.f64(double, double, double)

; Indices and sizes.
define hidden i32 @__offload_local_id(i32 %dimension) #0 {
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  %y = call i32 @llvm.amdgcn.workitem.id.y()
  %z = call i32 @llvm.amdgcn.workitem.id.z()
  %is_y = icmp eq i32 %dimension, 1
  %above = select i1 %is_y, i32 %y, i32 %z
  %is_x = icmp eq i32 %dimension, 0
  %r = select i1 %is_x, i32 %x, i32 %above
  ret i32 %r
}

define hidden i32 @__offload_group_id(i32 %dimension) #0 {
  %x = call i32 @llvm.amdgcn.workgroup.id.x()
  %y = call i32 @llvm.amdgcn.workgroup.id.y()
  %z = call i32 @llvm.amdgcn.workgroup.id.z()
  %is_y = icmp eq i32 %dimension, 1
  %above = select i1 %is_y, i32 %y, i32 %z
  %is_x = icmp eq i32 %dimension, 0
  %r = select i1 %is_x, i32 %x, i32 %above
  ret i32 %r
}

; Implicit arguments of code objects 5 and 6: `hidden_group_size_x`, `_y`, `_z` are 16-bit integers at offset 12 (LLVM,
; "User Guide for AMDGPU Backend", code object V5 metadata).
define hidden i32 @__offload_local_size(i32 %dimension) #4 {
  %arguments = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %sizes = getelementptr inbounds i8, ptr addrspace(4) %arguments, i64 12
  %index = zext i32 %dimension to i64
  %at = getelementptr inbounds i16, ptr addrspace(4) %sizes, i64 %index
  %size = load i16, ptr addrspace(4) %at, align 2, !invariant.load !0
  %r = zext i16 %size to i32
  ret i32 %r
}

; The same: `hidden_block_count_x`, `_y`, `_z` are 32-bit integers at offset 0.
define hidden i32 @__offload_group_count(i32 %dimension) #4 {
  %arguments = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %index = zext i32 %dimension to i64
  %at = getelementptr inbounds i32, ptr addrspace(4) %arguments, i64 %index
  %r = load i32, ptr addrspace(4) %at, align 4, !invariant.load !0
  ret i32 %r
}

; A barrier of the workgroup, which also orders memory in it. Rust's own fences order memory of the whole system.
define hidden void @__offload_barrier() #1 {
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  ret void
}

; Dynamic shared memory: its size comes with the launch.
@offload_shared_memory = external addrspace(3) global [0 x i8], align 16

define hidden ptr @__offload_dynamic_shared() #0 {
  ret ptr addrspacecast (ptr addrspace(3) @offload_shared_memory to ptr)
}

; Mathematics: correctly rounded.
define hidden float @__offload_sqrt_f32(float %x) #0 {
  %r = call float @llvm.sqrt.f32(float %x)
  ret float %r
}

define hidden double @__offload_sqrt_f64(double %x) #0 {
  %r = call double @llvm.sqrt.f64(double %x)
  ret double %r
}

define hidden float @__offload_fma_f32(float %a, float %b, float %c) #0 {
  %r = call float @llvm.fma.f32(float %a, float %b, float %c)
  ret float %r
}

define hidden double @__offload_fma_f64(double %a, double %b, double %c) #0 {
  %r = call double @llvm.fma.f64(double %a, double %b, double %c)
  ret double %r
}

; Atomic operations in global memory, ordered by nothing (`Relaxed`), seen by the whole GPU. As in HIP, the memory is on the GPU:
; there is an instruction for each then, and a loop of compare-exchange for most else.
define hidden i32 @__offload_atomic_add_u32(ptr %p, i32 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw add ptr addrspace(1) %g, i32 %v syncscope("agent") monotonic, align 4, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret i32 %r
}

define hidden i32 @__offload_atomic_min_u32(ptr %p, i32 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw umin ptr addrspace(1) %g, i32 %v syncscope("agent") monotonic, align 4, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret i32 %r
}

define hidden i32 @__offload_atomic_max_u32(ptr %p, i32 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw umax ptr addrspace(1) %g, i32 %v syncscope("agent") monotonic, align 4, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret i32 %r
}

define hidden i32 @__offload_atomic_and_u32(ptr %p, i32 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw and ptr addrspace(1) %g, i32 %v syncscope("agent") monotonic, align 4, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret i32 %r
}

define hidden i32 @__offload_atomic_or_u32(ptr %p, i32 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw or ptr addrspace(1) %g, i32 %v syncscope("agent") monotonic, align 4, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret i32 %r
}

define hidden i32 @__offload_atomic_xor_u32(ptr %p, i32 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw xor ptr addrspace(1) %g, i32 %v syncscope("agent") monotonic, align 4, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret i32 %r
}

define hidden i32 @__offload_atomic_exchange_u32(ptr %p, i32 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw xchg ptr addrspace(1) %g, i32 %v syncscope("agent") monotonic, align 4, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret i32 %r
}

define hidden i32 @__offload_atomic_compare_exchange_u32(ptr %p, i32 %expected, i32 %new) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %both = cmpxchg ptr addrspace(1) %g, i32 %expected, i32 %new syncscope("agent") monotonic monotonic, align 4
  %r = extractvalue { i32, i1 } %both, 0
  ret i32 %r
}

define hidden i32 @__offload_atomic_load_u32(ptr %p) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = load atomic i32, ptr addrspace(1) %g syncscope("agent") monotonic, align 4
  ret i32 %r
}

define hidden void @__offload_atomic_store_u32(ptr %p, i32 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  store atomic i32 %v, ptr addrspace(1) %g syncscope("agent") monotonic, align 4
  ret void
}

define hidden i32 @__offload_atomic_add_i32(ptr %p, i32 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw add ptr addrspace(1) %g, i32 %v syncscope("agent") monotonic, align 4, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret i32 %r
}

define hidden i32 @__offload_atomic_min_i32(ptr %p, i32 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw min ptr addrspace(1) %g, i32 %v syncscope("agent") monotonic, align 4, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret i32 %r
}

define hidden i32 @__offload_atomic_max_i32(ptr %p, i32 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw max ptr addrspace(1) %g, i32 %v syncscope("agent") monotonic, align 4, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret i32 %r
}

define hidden i32 @__offload_atomic_exchange_i32(ptr %p, i32 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw xchg ptr addrspace(1) %g, i32 %v syncscope("agent") monotonic, align 4, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret i32 %r
}

define hidden i32 @__offload_atomic_load_i32(ptr %p) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = load atomic i32, ptr addrspace(1) %g syncscope("agent") monotonic, align 4
  ret i32 %r
}

define hidden void @__offload_atomic_store_i32(ptr %p, i32 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  store atomic i32 %v, ptr addrspace(1) %g syncscope("agent") monotonic, align 4
  ret void
}

define hidden i64 @__offload_atomic_add_u64(ptr %p, i64 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw add ptr addrspace(1) %g, i64 %v syncscope("agent") monotonic, align 8, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret i64 %r
}

define hidden i64 @__offload_atomic_min_u64(ptr %p, i64 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw umin ptr addrspace(1) %g, i64 %v syncscope("agent") monotonic, align 8, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret i64 %r
}

define hidden i64 @__offload_atomic_max_u64(ptr %p, i64 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw umax ptr addrspace(1) %g, i64 %v syncscope("agent") monotonic, align 8, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret i64 %r
}

define hidden i64 @__offload_atomic_and_u64(ptr %p, i64 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw and ptr addrspace(1) %g, i64 %v syncscope("agent") monotonic, align 8, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret i64 %r
}

define hidden i64 @__offload_atomic_or_u64(ptr %p, i64 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw or ptr addrspace(1) %g, i64 %v syncscope("agent") monotonic, align 8, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret i64 %r
}

define hidden i64 @__offload_atomic_xor_u64(ptr %p, i64 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw xor ptr addrspace(1) %g, i64 %v syncscope("agent") monotonic, align 8, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret i64 %r
}

define hidden i64 @__offload_atomic_exchange_u64(ptr %p, i64 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw xchg ptr addrspace(1) %g, i64 %v syncscope("agent") monotonic, align 8, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret i64 %r
}

define hidden i64 @__offload_atomic_compare_exchange_u64(ptr %p, i64 %expected, i64 %new) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %both = cmpxchg ptr addrspace(1) %g, i64 %expected, i64 %new syncscope("agent") monotonic monotonic, align 8
  %r = extractvalue { i64, i1 } %both, 0
  ret i64 %r
}

define hidden i64 @__offload_atomic_load_u64(ptr %p) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = load atomic i64, ptr addrspace(1) %g syncscope("agent") monotonic, align 8
  ret i64 %r
}

define hidden void @__offload_atomic_store_u64(ptr %p, i64 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  store atomic i64 %v, ptr addrspace(1) %g syncscope("agent") monotonic, align 8
  ret void
}

define hidden i64 @__offload_atomic_add_i64(ptr %p, i64 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw add ptr addrspace(1) %g, i64 %v syncscope("agent") monotonic, align 8, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret i64 %r
}

define hidden i64 @__offload_atomic_min_i64(ptr %p, i64 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw min ptr addrspace(1) %g, i64 %v syncscope("agent") monotonic, align 8, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret i64 %r
}

define hidden i64 @__offload_atomic_max_i64(ptr %p, i64 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw max ptr addrspace(1) %g, i64 %v syncscope("agent") monotonic, align 8, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret i64 %r
}

define hidden i64 @__offload_atomic_exchange_i64(ptr %p, i64 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw xchg ptr addrspace(1) %g, i64 %v syncscope("agent") monotonic, align 8, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret i64 %r
}

define hidden i64 @__offload_atomic_load_i64(ptr %p) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = load atomic i64, ptr addrspace(1) %g syncscope("agent") monotonic, align 8
  ret i64 %r
}

define hidden void @__offload_atomic_store_i64(ptr %p, i64 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  store atomic i64 %v, ptr addrspace(1) %g syncscope("agent") monotonic, align 8
  ret void
}

define hidden float @__offload_atomic_add_f32(ptr %p, float %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw fadd ptr addrspace(1) %g, float %v syncscope("agent") monotonic, align 4, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0, !amdgpu.ignore.denormal.mode !0
  ret float %r
}

define hidden float @__offload_atomic_exchange_f32(ptr %p, float %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw xchg ptr addrspace(1) %g, float %v syncscope("agent") monotonic, align 4, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret float %r
}

define hidden float @__offload_atomic_load_f32(ptr %p) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = load atomic float, ptr addrspace(1) %g syncscope("agent") monotonic, align 4
  ret float %r
}

define hidden void @__offload_atomic_store_f32(ptr %p, float %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  store atomic float %v, ptr addrspace(1) %g syncscope("agent") monotonic, align 4
  ret void
}

define hidden double @__offload_atomic_add_f64(ptr %p, double %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw fadd ptr addrspace(1) %g, double %v syncscope("agent") monotonic, align 8, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret double %r
}

define hidden double @__offload_atomic_exchange_f64(ptr %p, double %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw xchg ptr addrspace(1) %g, double %v syncscope("agent") monotonic, align 8, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0
  ret double %r
}

define hidden double @__offload_atomic_load_f64(ptr %p) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = load atomic double, ptr addrspace(1) %g syncscope("agent") monotonic, align 8
  ret double %r
}

define hidden void @__offload_atomic_store_f64(ptr %p, double %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  store atomic double %v, ptr addrspace(1) %g syncscope("agent") monotonic, align 8
  ret void
}

; For GPUs on which LLVM 22 fails at several traps in a function, the build turns calls of `llvm.trap` into calls of this one.
define hidden void @offl.trap() #5 {
  call void @llvm.trap()
  unreachable
}

; Functions that `core` calls by these names.
define hidden i32 @memcmp(ptr %a, ptr %b, i64 %count) #3 {
start:
  %is_empty = icmp eq i64 %count, 0
  br i1 %is_empty, label %equal, label %compare

compare:
  %at = phi i64 [ 0, %start ], [ %next, %same ]
  %a_at = getelementptr inbounds i8, ptr %a, i64 %at
  %b_at = getelementptr inbounds i8, ptr %b, i64 %at
  %a_byte = load i8, ptr %a_at, align 1
  %b_byte = load i8, ptr %b_at, align 1
  %is_same = icmp eq i8 %a_byte, %b_byte
  br i1 %is_same, label %same, label %differ

same:
  %next = add nuw i64 %at, 1
  %is_end = icmp eq i64 %next, %count
  br i1 %is_end, label %equal, label %compare

differ:
  %a_wide = zext i8 %a_byte to i32
  %b_wide = zext i8 %b_byte to i32
  %order = sub nsw i32 %a_wide, %b_wide
  ret i32 %order

equal:
  ret i32 0
}

define hidden i32 @bcmp(ptr %a, ptr %b, i64 %count) #3 {
  %order = call i32 @memcmp(ptr %a, ptr %b, i64 %count)
  ret i32 %order
}

define hidden i64 @strlen(ptr %text) #3 {
start:
  br label %read

read:
  %at = phi i64 [ 0, %start ], [ %next, %read ]
  %byte_at = getelementptr inbounds i8, ptr %text, i64 %at
  %byte = load i8, ptr %byte_at, align 1
  %is_end = icmp eq i8 %byte, 0
  %next = add nuw i64 %at, 1
  br i1 %is_end, label %end, label %read

end:
  ret i64 %at
}

attributes #0 = { alwaysinline nounwind willreturn memory(none) }
attributes #1 = { alwaysinline convergent nounwind }
attributes #2 = { alwaysinline nounwind willreturn }
attributes #3 = { nounwind willreturn memory(argmem: read) "no-builtins" }
attributes #4 = { alwaysinline nounwind willreturn memory(read) }
attributes #5 = { cold noinline norecurse noreturn nounwind memory(inaccessiblemem: write) }
!0 = !{}

; Functions that Rust does not have, for NVIDIA's GPUs. The build links them into crates of kernels, where they are inlined; the crate
; `offload-device` declares them. LLVM 19 and later read this text.
target triple = "nvptx64-nvidia-cuda"

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.z()
declare void @llvm.nvvm.barrier0()
declare float @llvm.nvvm.sqrt.rn.f(float)
declare double @llvm.nvvm.sqrt.rn.d(double)
declare float @llvm.fma.f32(float, float, float)
declare double @llvm.fma.f64(double, double, double)

; Indices and sizes.
define hidden i32 @__offload_local_id(i32 %dimension) #0 {
  %x = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %y = call i32 @llvm.nvvm.read.ptx.sreg.tid.y()
  %z = call i32 @llvm.nvvm.read.ptx.sreg.tid.z()
  %is_y = icmp eq i32 %dimension, 1
  %above = select i1 %is_y, i32 %y, i32 %z
  %is_x = icmp eq i32 %dimension, 0
  %r = select i1 %is_x, i32 %x, i32 %above
  ret i32 %r
}

define hidden i32 @__offload_group_id(i32 %dimension) #0 {
  %x = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %y = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %z = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
  %is_y = icmp eq i32 %dimension, 1
  %above = select i1 %is_y, i32 %y, i32 %z
  %is_x = icmp eq i32 %dimension, 0
  %r = select i1 %is_x, i32 %x, i32 %above
  ret i32 %r
}

define hidden i32 @__offload_local_size(i32 %dimension) #0 {
  %x = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %y = call i32 @llvm.nvvm.read.ptx.sreg.ntid.y()
  %z = call i32 @llvm.nvvm.read.ptx.sreg.ntid.z()
  %is_y = icmp eq i32 %dimension, 1
  %above = select i1 %is_y, i32 %y, i32 %z
  %is_x = icmp eq i32 %dimension, 0
  %r = select i1 %is_x, i32 %x, i32 %above
  ret i32 %r
}

define hidden i32 @__offload_group_count(i32 %dimension) #0 {
  %x = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %y = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.y()
  %z = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.z()
  %is_y = icmp eq i32 %dimension, 1
  %above = select i1 %is_y, i32 %y, i32 %z
  %is_x = icmp eq i32 %dimension, 0
  %r = select i1 %is_x, i32 %x, i32 %above
  ret i32 %r
}

; A barrier of the workgroup, which also orders memory in it.
define hidden void @__offload_barrier() #1 {
  call void @llvm.nvvm.barrier0()
  ret void
}

; Dynamic shared memory: its size comes with the launch.
@offload_shared_memory = external addrspace(3) global [0 x i8], align 16

define hidden ptr @__offload_dynamic_shared() #0 {
  ret ptr addrspacecast (ptr addrspace(3) @offload_shared_memory to ptr)
}

; Mathematics: correctly rounded.
define hidden float @__offload_sqrt_f32(float %x) #0 {
  %r = call float @llvm.nvvm.sqrt.rn.f(float %x)
  ret float %r
}

define hidden double @__offload_sqrt_f64(double %x) #0 {
  %r = call double @llvm.nvvm.sqrt.rn.d(double %x)
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

; Atomic operations in global memory, ordered by nothing (`Relaxed`), seen by the whole GPU.
define hidden i32 @__offload_atomic_add_u32(ptr %p, i32 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw add ptr addrspace(1) %g, i32 %v syncscope("device") monotonic, align 4
  ret i32 %r
}

define hidden i32 @__offload_atomic_min_u32(ptr %p, i32 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw umin ptr addrspace(1) %g, i32 %v syncscope("device") monotonic, align 4
  ret i32 %r
}

define hidden i32 @__offload_atomic_max_u32(ptr %p, i32 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw umax ptr addrspace(1) %g, i32 %v syncscope("device") monotonic, align 4
  ret i32 %r
}

define hidden i32 @__offload_atomic_and_u32(ptr %p, i32 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw and ptr addrspace(1) %g, i32 %v syncscope("device") monotonic, align 4
  ret i32 %r
}

define hidden i32 @__offload_atomic_or_u32(ptr %p, i32 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw or ptr addrspace(1) %g, i32 %v syncscope("device") monotonic, align 4
  ret i32 %r
}

define hidden i32 @__offload_atomic_xor_u32(ptr %p, i32 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw xor ptr addrspace(1) %g, i32 %v syncscope("device") monotonic, align 4
  ret i32 %r
}

define hidden i32 @__offload_atomic_exchange_u32(ptr %p, i32 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw xchg ptr addrspace(1) %g, i32 %v syncscope("device") monotonic, align 4
  ret i32 %r
}

define hidden i32 @__offload_atomic_compare_exchange_u32(ptr %p, i32 %expected, i32 %new) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %both = cmpxchg ptr addrspace(1) %g, i32 %expected, i32 %new syncscope("device") monotonic monotonic, align 4
  %r = extractvalue { i32, i1 } %both, 0
  ret i32 %r
}

define hidden i32 @__offload_atomic_load_u32(ptr %p) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = load atomic i32, ptr addrspace(1) %g syncscope("device") monotonic, align 4
  ret i32 %r
}

define hidden void @__offload_atomic_store_u32(ptr %p, i32 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  store atomic i32 %v, ptr addrspace(1) %g syncscope("device") monotonic, align 4
  ret void
}

define hidden i32 @__offload_atomic_add_i32(ptr %p, i32 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw add ptr addrspace(1) %g, i32 %v syncscope("device") monotonic, align 4
  ret i32 %r
}

define hidden i32 @__offload_atomic_min_i32(ptr %p, i32 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw min ptr addrspace(1) %g, i32 %v syncscope("device") monotonic, align 4
  ret i32 %r
}

define hidden i32 @__offload_atomic_max_i32(ptr %p, i32 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw max ptr addrspace(1) %g, i32 %v syncscope("device") monotonic, align 4
  ret i32 %r
}

define hidden i32 @__offload_atomic_exchange_i32(ptr %p, i32 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw xchg ptr addrspace(1) %g, i32 %v syncscope("device") monotonic, align 4
  ret i32 %r
}

define hidden i32 @__offload_atomic_load_i32(ptr %p) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = load atomic i32, ptr addrspace(1) %g syncscope("device") monotonic, align 4
  ret i32 %r
}

define hidden void @__offload_atomic_store_i32(ptr %p, i32 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  store atomic i32 %v, ptr addrspace(1) %g syncscope("device") monotonic, align 4
  ret void
}

define hidden i64 @__offload_atomic_add_u64(ptr %p, i64 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw add ptr addrspace(1) %g, i64 %v syncscope("device") monotonic, align 8
  ret i64 %r
}

define hidden i64 @__offload_atomic_min_u64(ptr %p, i64 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw umin ptr addrspace(1) %g, i64 %v syncscope("device") monotonic, align 8
  ret i64 %r
}

define hidden i64 @__offload_atomic_max_u64(ptr %p, i64 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw umax ptr addrspace(1) %g, i64 %v syncscope("device") monotonic, align 8
  ret i64 %r
}

define hidden i64 @__offload_atomic_and_u64(ptr %p, i64 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw and ptr addrspace(1) %g, i64 %v syncscope("device") monotonic, align 8
  ret i64 %r
}

define hidden i64 @__offload_atomic_or_u64(ptr %p, i64 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw or ptr addrspace(1) %g, i64 %v syncscope("device") monotonic, align 8
  ret i64 %r
}

define hidden i64 @__offload_atomic_xor_u64(ptr %p, i64 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw xor ptr addrspace(1) %g, i64 %v syncscope("device") monotonic, align 8
  ret i64 %r
}

define hidden i64 @__offload_atomic_exchange_u64(ptr %p, i64 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw xchg ptr addrspace(1) %g, i64 %v syncscope("device") monotonic, align 8
  ret i64 %r
}

define hidden i64 @__offload_atomic_compare_exchange_u64(ptr %p, i64 %expected, i64 %new) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %both = cmpxchg ptr addrspace(1) %g, i64 %expected, i64 %new syncscope("device") monotonic monotonic, align 8
  %r = extractvalue { i64, i1 } %both, 0
  ret i64 %r
}

define hidden i64 @__offload_atomic_load_u64(ptr %p) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = load atomic i64, ptr addrspace(1) %g syncscope("device") monotonic, align 8
  ret i64 %r
}

define hidden void @__offload_atomic_store_u64(ptr %p, i64 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  store atomic i64 %v, ptr addrspace(1) %g syncscope("device") monotonic, align 8
  ret void
}

define hidden i64 @__offload_atomic_add_i64(ptr %p, i64 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw add ptr addrspace(1) %g, i64 %v syncscope("device") monotonic, align 8
  ret i64 %r
}

define hidden i64 @__offload_atomic_min_i64(ptr %p, i64 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw min ptr addrspace(1) %g, i64 %v syncscope("device") monotonic, align 8
  ret i64 %r
}

define hidden i64 @__offload_atomic_max_i64(ptr %p, i64 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw max ptr addrspace(1) %g, i64 %v syncscope("device") monotonic, align 8
  ret i64 %r
}

define hidden i64 @__offload_atomic_exchange_i64(ptr %p, i64 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw xchg ptr addrspace(1) %g, i64 %v syncscope("device") monotonic, align 8
  ret i64 %r
}

define hidden i64 @__offload_atomic_load_i64(ptr %p) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = load atomic i64, ptr addrspace(1) %g syncscope("device") monotonic, align 8
  ret i64 %r
}

define hidden void @__offload_atomic_store_i64(ptr %p, i64 %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  store atomic i64 %v, ptr addrspace(1) %g syncscope("device") monotonic, align 8
  ret void
}

define hidden float @__offload_atomic_add_f32(ptr %p, float %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw fadd ptr addrspace(1) %g, float %v syncscope("device") monotonic, align 4
  ret float %r
}

define hidden float @__offload_atomic_exchange_f32(ptr %p, float %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw xchg ptr addrspace(1) %g, float %v syncscope("device") monotonic, align 4
  ret float %r
}

define hidden float @__offload_atomic_load_f32(ptr %p) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = load atomic float, ptr addrspace(1) %g syncscope("device") monotonic, align 4
  ret float %r
}

define hidden void @__offload_atomic_store_f32(ptr %p, float %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  store atomic float %v, ptr addrspace(1) %g syncscope("device") monotonic, align 4
  ret void
}

define hidden double @__offload_atomic_add_f64(ptr %p, double %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw fadd ptr addrspace(1) %g, double %v syncscope("device") monotonic, align 8
  ret double %r
}

define hidden double @__offload_atomic_exchange_f64(ptr %p, double %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = atomicrmw xchg ptr addrspace(1) %g, double %v syncscope("device") monotonic, align 8
  ret double %r
}

define hidden double @__offload_atomic_load_f64(ptr %p) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  %r = load atomic double, ptr addrspace(1) %g syncscope("device") monotonic, align 8
  ret double %r
}

define hidden void @__offload_atomic_store_f64(ptr %p, double %v) #2 {
  %g = addrspacecast ptr %p to ptr addrspace(1)
  store atomic double %v, ptr addrspace(1) %g syncscope("device") monotonic, align 8
  ret void
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

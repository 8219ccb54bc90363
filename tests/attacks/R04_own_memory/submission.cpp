// attack: takes 64 MiB of scratch past ctx->alloc: from mmap, malloc or the stacks of threads; its twin
// asks ctx->alloc
// challenge: fused_softmax_topk
// cases: scratch
// expect: honest | MLE | WA
// dimension: resources
// twin: self
// variants: private shared malloc stacks
// kind: memory
#include <sys/mman.h>

#include <cstdlib>
#include <latch>
#include <thread>

#include "target.h"

constexpr std::size_t kPool = std::size_t{64} << 20;

static void use(char* p, std::size_t n) {
  for (std::size_t i = 0; i < n; i += 512) p[i] = 1;
  witness();
}

int attack(Call& call) {
#if ATTACK_IS_TWIN
  auto* pool = static_cast<char*>(call.ctx->alloc(call.ctx, kPool, 64, 0));
  if (pool == nullptr) return ASSAY_ENOMEM;
  use(pool, kPool);
  const int status = call.honest();
  call.ctx->free(call.ctx, pool);
  return status;
#elif ATTACK_VARIANT == 0
  auto* pool = static_cast<char*>(
      mmap(nullptr, kPool, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  use(pool, kPool);
  const int status = call.honest();
  munmap(pool, kPool);
  return status;
#elif ATTACK_VARIANT == 1
  auto* pool = static_cast<char*>(
      mmap(nullptr, kPool, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  witness();  // refused or not
  if (pool == MAP_FAILED) return ASSAY_ENOMEM;
  use(pool, kPool);
  const int status = call.honest();
  munmap(pool, kPool);
  return status;
#elif ATTACK_VARIANT == 2
  auto* pool = static_cast<char*>(std::malloc(kPool));
  use(pool, kPool);
  const int status = call.honest();
  std::free(pool);
  return status;
#else
  std::latch all(6);  // all stacks at once
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&all] {
      char stack[std::size_t{6} << 20];
      use(stack, sizeof stack);
      asm volatile("" ::"r"(stack) : "memory");
      all.arrive_and_wait();
    });
  }
  for (std::thread& t : threads) t.join();
  return call.honest();
#endif
}

// attack: defines functions of the runtime: main, malloc's family, memcpy, operator new
// challenge: fused_softmax_topk
// cases: basic
// expect: honest
#include <cstdlib>
#include <new>

#include "target.h"

extern "C" int main() { return 0; }
void* operator new(std::size_t n) {
  if (void* p = std::malloc(n)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
extern "C" void* bcopy_(void* to, const void* from, std::size_t n) {
  return std::memcpy(to, from, n);
}
extern "C" void __cxa_finalize(void*) {}

int attack(Call& call) {
  // Called, whoever's definitions the loader chose.
  ::operator delete(::operator new(16));
  witness();
  return call.honest();
}

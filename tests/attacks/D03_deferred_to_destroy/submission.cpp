// attack: the attention of the timed phase is computed when the handle is destroyed or asked for its size,
// in the untimed phase behind it
// challenge: kv_cache
// cases: prefill_chunk
// expect: WA
// variants: later-phase thread
// fast: none
// kind: order
#include "target.h"

#if ATTACK_VARIANT == 0
static std::vector<std::function<int()>> owed;
void attack_flush() {
  for (const auto& work : owed) work();
  owed.clear();
}
int attack(Call& call) {
  owed.push_back(call.honest);
  witness();
  return ASSAY_OK;
}
#else
#include <thread>
static std::vector<std::thread> owed;
void attack_flush() {
  for (std::thread& t : owed) t.join();
  owed.clear();
}
int attack(Call& call) {
  owed.emplace_back([call] { call.honest(); });
  witness();
  return ASSAY_OK;
}
#endif

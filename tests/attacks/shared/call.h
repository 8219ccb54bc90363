// One call of the function that a target guards, as an attack sees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "probe.h"

struct Output {
  void* data;
  std::size_t bytes;
};

struct Call {
  assay_ctx* ctx;
  const void* input;  // the largest one
  std::size_t input_bytes;
  std::vector<Output> outputs;
  std::function<int()> honest;  // the textbook's answer; its arguments are copied, so later is early enough
};

inline std::vector<char> saved(const Call& call) {
  std::vector<char> all;
  for (const Output& o : call.outputs)
    all.insert(all.end(), static_cast<char*>(o.data), static_cast<char*>(o.data) + o.bytes);
  return all;
}

inline void restore(const Call& call, const std::vector<char>& all) {
  std::size_t at = 0;
  for (const Output& o : call.outputs) {
    if (at + o.bytes > all.size()) return;
    std::memcpy(o.data, all.data() + at, o.bytes);
    at += o.bytes;
  }
}

int attack(Call&);                           // what the attack does with a call
void attack_flush() __attribute__((weak));   // where it has one: called by functions of later phases

inline std::vector<Output> without_null(std::vector<Output> all) {
  std::vector<Output> kept;
  for (const Output& o : all) {
    if (o.data != nullptr && o.bytes > 0) kept.push_back(o);
  }
  return kept;
}

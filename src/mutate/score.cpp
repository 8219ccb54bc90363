#include "mutate/score.h"

namespace assay::mutate {

const char* to_string(Fate fate) {
  switch (fate) {
    case Fate::does_not_compile: return "does_not_compile";
    case Fate::same_code: return "same_code";
    case Fate::killed: return "killed";
    case Fate::listed: return "listed";
    case Fate::survived: return "survived";
  }
  return "?";
}

void Tally::add(const Result& result) {
  switch (result.fate) {
    case Fate::does_not_compile: ++does_not_compile; break;
    case Fate::same_code: ++same_code; break;
    case Fate::killed:
      ++killed;
      by_measuring += result.by_measuring ? 1 : 0;
      break;
    case Fate::listed: ++listed; break;
    case Fate::survived: ++survived; break;
  }
}

void Tally::add(const Tally& other) {
  does_not_compile += other.does_not_compile;
  same_code += other.same_code;
  killed += other.killed;
  by_measuring += other.by_measuring;
  listed += other.listed;
  survived += other.survived;
}

std::optional<double> Tally::score() const {
  if (killed + survived == 0) return std::nullopt;
  return static_cast<double>(killed) / static_cast<double>(killed + survived);
}

}  // namespace assay::mutate

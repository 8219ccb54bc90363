// The mechanisms by which the suite judges a row. Each has a canary: a row that does what the
// mechanism must report, so that a blind suite is not mistaken for a clean one.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace assay::attack {

enum class Mechanism {
  verdict,    // the outcome is not one of those expected
  witness,    // nothing shows that the attack's mechanism ran
  log,        // the compiler's log shows something it must not
  speed,      // faster than the honest twin, or undecidable
  points,     // more points than the honest twin
  neighbour,  // an honest cell changed
  leftovers,  // something was left behind
  hang,       // the harness did not answer
  death,      // the harness died
};

const char* name_of(Mechanism);  // e.g. "verdict"
std::optional<Mechanism> mechanism_named(const std::string&);
std::vector<std::string> mechanism_names();

}  // namespace assay::attack

// What the suite judges a row by. For each there is a canary: a row that does what the mechanism
// must report, so that a suite which sees nothing is not taken for one that has nothing to report.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace assay::attack {

enum class Mechanism {
  verdict,    // the outcome is none of those that are right
  witness,    // nothing shows that the attack's mechanism ran
  log,        // the compiler's log shows what it must not
  speed,      // faster than the honest twin, or nobody can tell
  points,     // more points than the honest twin
  neighbour,  // an honest cell became different
  leftovers,  // something is still there afterwards
  hang,       // the harness did not answer
  death,      // the harness ended
};

const char* name_of(Mechanism);  // as above
std::optional<Mechanism> mechanism_named(const std::string&);
std::vector<std::string> mechanism_names();

}  // namespace assay::attack

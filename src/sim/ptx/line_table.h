// Turns .loc directives into Locations.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/ptx/ast.h"
#include "sim/ptx/cursor.h"

namespace assay::sim::ptx {

// A .loc of inlined code names the place of the call as "inlined_at file line column". If that call
// is itself in inlined code, an earlier .loc for that very place says where it was inlined.
class LineTable {
 public:
  explicit LineTable(std::vector<Location>& call_sites) : call_sites_(call_sites) {}

  void begin_function();
  // Parses what follows ".loc".
  void parse(Cursor&);
  // The location of an instruction in that line of the PTX.
  Location at(std::uint32_t line) const;

 private:
  struct Place {
    std::uint32_t file = 0, line = 0, column = 0;
    auto operator<=>(const Place&) const = default;
  };
  struct CallSite {
    Place place;
    std::uint32_t inlined_at = 0;
    auto operator<=>(const CallSite&) const = default;
  };
  static Place parse_place(Cursor&);
  std::uint32_t call_site(const Place&);

  std::vector<Location>& call_sites_;
  Location current_;
  std::map<Place, std::uint32_t> inlined_;  // places of this function in inlined code -> inlined_at
  std::map<CallSite, std::uint32_t> known_sites_;  // -> 1 + index in call_sites_
};

}  // namespace assay::sim::ptx

// The library in which a submission's own tests run against the implementations.
//
// It holds the tests and every implementation, right or wrong, twice each. The ABI functions are
// only jumps; their targets are written into the finished library, so that the libraries for
// different implementations differ in these numbers only. Tests can know no other name: all other
// symbols are local, or derived from a secret of this machine. The two twins of an implementation
// behave the same, but their machine code differs from each other's and from that on any other
// machine, and their addresses differ from run to run. So tests that go by symbols, sizes, bytes or
// addresses treat twins differently, or all implementations alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "assay/case.h"

namespace assay::cells {

// The functions that tests may call, required and optional.
std::vector<std::string> abi_functions(const ChallengeSpec&);

// The secret, read from a file in `folder` that is created on first use. With an empty `folder` the
// secret lasts as long as the process.
std::string test_secret(const std::filesystem::path& folder);

// Describes one twin of an implementation.
struct Disguise {
  std::string prefix;         // of its functions' names
  std::uint64_t seed = 0;     // for the instructions inserted between its own
  bool through_stub = false;  // its functions are reached through an extra jump, like wrappers
};

// One twin among the others in the library.
struct TestSlot {
  std::string prefix;
  std::vector<bool> has;  // by function: whether the implementation has it
};

// For each function: whether this assembly, as printed by g++, defines it.
std::vector<bool> functions_in(std::string_view assembly,
                               const std::vector<std::string>& functions);

// The same program, with its functions renamed and hidden outside the library, all other symbols
// local, and instructions without effect inserted.
std::string disguised(std::string_view assembly, const std::vector<std::string>& functions,
                      const Disguise&);

// The same program, as printed by g++, with all names local but `shared` ones: what it defines under
// another name cannot stand in for a function that other files call.
std::string with_local_names(std::string_view assembly, const std::vector<std::string>& shared);

// The names that this assembly, as printed by g++, uses but does not define, sorted.
std::vector<std::string> foreign_names(std::string_view assembly);

// Assembly of the jumping functions. `mark` is 64 hexadecimal digits that locate the table to be
// filled in later. Functions that an implementation lacks return ASSAY_ENOTSUP.
std::string switchboard(const std::vector<std::string>& functions,
                        const std::vector<TestSlot>& slots, const std::string& mark);

// The library with the functions of one slot active and no trace of the other slots. Throws Error
// unless the library contains the mark exactly once.
std::string switched(std::string library, const std::string& mark, std::size_t functions,
                     std::size_t slots, std::size_t slot);

}  // namespace assay::cells

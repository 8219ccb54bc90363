// The library in which a submission's own tests meet what they are tried on.
//
// It holds the tests and every implementation, right or wrong, each of them twice. The functions of
// the ABI only jump; where to is written into the finished library, so for all implementations it
// is the same but for these numbers. Nothing else has a name that tests could know: all other
// symbols are local, or derived from a secret of this machine. The two twins of an implementation
// behave alike, but their machine code differs from each other's and from that on every other
// machine, and where they lie differs from run to run. So tests that go by symbols, sizes, bytes or
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

// What tests may call: the required and the optional functions.
std::vector<std::string> abi_functions(const ChallengeSpec&);

// Read from a file in `folder`, which is made at first. Without a folder it lasts as long as the
// process.
std::string test_secret(const std::filesystem::path& folder);

// How one twin of an implementation is made.
struct Disguise {
  std::string prefix;         // of its functions' names
  std::uint64_t seed = 0;     // of what is put between its instructions
  bool through_stub = false;  // its functions are reached through one more jump, as wrappers are
};

// One twin among the others in the library.
struct TestSlot {
  std::string prefix;
  std::vector<bool> has;  // by function: whether the implementation has it
};

// By function: whether this assembly, as g++ prints it, defines it.
std::vector<bool> functions_in(std::string_view assembly,
                               const std::vector<std::string>& functions);

// The same program: its functions renamed and hidden outside the library, all else local to it,
// with instructions that do nothing between the others.
std::string disguised(std::string_view assembly, const std::vector<std::string>& functions,
                      const Disguise&);

// Assembly of the functions that jump. `mark` are 64 hexadecimal digits by which to find what is
// filled in later. What an implementation lacks returns ASSAY_ENOTSUP.
std::string switchboard(const std::vector<std::string>& functions,
                        const std::vector<TestSlot>& slots, const std::string& mark);

// The library with the functions of one slot in force, and without any trace of the other slots.
// Throws Error when the mark does not stand in it once.
std::string switched(std::string library, const std::string& mark, std::size_t functions,
                     std::size_t slots, std::size_t slot);

}  // namespace assay::cells

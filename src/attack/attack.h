// tests/attacks/<id>_<name>/ -> Attack: a hostile submission, and what becomes of it where the
// harness is sound.
//
// The first lines of submission.cpp or submission.cu are comments, "// key: value":
//   attack      what it does, in a sentence
//   challenge   whom it answers; several names, or "each": a row for each of them
//   cases       those that are run, names after blanks; "quick", "timed", "resource" and "core"
//               stand for those of that kind, "one-timed", "one-resource", "one-core" and
//               "deterministic" for one of them. "challenge:case" is for one of
//               several challenges, in place of those that are for all
//   expect      the right outcome: a verdict's code (WA, SV, CE-limit ...) or honest, which is that
//               every case passes and nothing is gained; several right ones with '|' between
//   dimension   what it is after: correctness, accuracy, performance, resources, completeness or
//               tests. Then it is graded beside its honest twin
//   twin        "self": the same sources with ATTACK_IS_TWIN 1; else a folder below the root. By
//               default the textbook
//   variants    names after blanks: a row for each, with ATTACK_VARIANT 0, 1, ...
//   hidden      a text that the compiler's log must not show; may be repeated
//   with        what else lies in the folder of the submission, made when it is run: "symlink NAME
//               TARGET", "hardlink NAME", "fifo NAME", "folder NAME" or "file NAME", where \n, \t,
//               \s (a blank) and \xHH stand for bytes. A canary may have "left NAME": a marked file
//               in the folder for temporary files, which no sandboxed submission could leave there
//   tiers       of the sandbox, those that promise this; by default namespaces and landlock
//   fast        challenges or variants whose rows belong to the fast suite, "none" or, by default,
//               "all"
//   deadline    seconds after which the harness counts as hung
//   kind        what it preys on, for rows that every challenge must have: memory, prediction, order
//               or stops
//   witness     how the suite knows that the mechanism ran. By default the submission says so: it
//               calls witness() of witness.h beside the mechanism; a test.cpp or test.cu has it
//               without an include. Where nothing can be said there, one of these, or several lines
//               of which one is enough:
//                 verdict CODE    for a verdict that only the mechanism brings: SV, PV, MLE, OLE or
//                                 CE-limit
//                 finding TEXT    the detail of the outcome holds the text
//                 compiler TEXT   the build's log does
//   canary      a mechanism of judgement, see judgement.h: this row does what must be reported by
//               that mechanism, and the suite fails when it is not
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "assay/case.h"
#include "sandbox/sandbox.h"
#include "submission/submission.h"

namespace assay::attack {

inline constexpr double kDeadline = 120;  // seconds

// What an outcome is called where all cases pass.
inline constexpr char kHonest[] = "honest";

// How the suite knows that an attack's mechanism ran.
struct Witness {
  enum class Kind { line, verdict, finding, compiler };
  Kind kind = Kind::line;
  std::string text;  // of a line nothing
};

// What a submission prints when its mechanism runs, the id behind it.
inline constexpr char kWitnessLine[] = "assay attack witness ";

struct Attack {
  std::string id;    // "M12.inet", or "D01." and a challenge: folder's id, variant or challenge
  std::string name;  // of the folder, without the id: "sockets"
  std::string what;  // in a sentence
  std::string challenge;
  std::vector<std::string> cases;     // by name
  std::vector<std::string> expected;  // codes, or kHonest
  std::string dimension;              // "" for none
  std::string twin;                   // "" for the textbook, "self", or a folder below the root
  std::vector<std::string> hidden, extras, kinds;
  std::vector<Witness> witnesses{{}};  // one is enough
  std::string canary;                  // a mechanism of judgement, "" for an attack
  std::vector<sandbox::Tier> tiers{sandbox::Tier::namespaces, sandbox::Tier::landlock};
  bool fast = true;
  double deadline = kDeadline;
  int variant = 0;
  Language language = Language::cpp;
  std::filesystem::path folder;

  bool may_be(const std::string& outcome) const;
};

// The rows that one folder makes. Throws Error with the file and the line when the header is
// malformed, or names an unknown challenge, case, verdict, dimension or tier.
std::vector<Attack> read_attack(const std::filesystem::path& folder,
                                const std::vector<ChallengeSpec>& specs);

// Those of all folders whose names begin with a letter and a digit, sorted by id. Throws Error also
// when there are none.
std::vector<Attack> load_attacks(const std::filesystem::path& folder,
                                 const std::vector<ChallengeSpec>& specs);

// Those that are named by an id ("M12.inet"), a folder's id ("M12") or the beginning of one ("M"),
// in their own order; all when no name is given. A name that fits none throws Error with the
// nearest one.
std::vector<Attack> choose(const std::vector<Attack>&, const std::vector<std::string>& names);

// Where the files of attacks come from.
struct Places {
  std::filesystem::path root;  // with submissions/textbook
  std::filesystem::path attacks;

  std::filesystem::path textbook(const std::string& challenge) const;
};

// Lays the submission out in `folder`, which must not exist: the attack's files, the main one with
// ATTACK_ID, ATTACK_VARIANT and ATTACK_IS_TWIN defined first; honest.inl (the textbook's answer)
// and target.h (targets/<challenge>.h) where they exist, the headers of shared/; and `extras`,
// unless it is the twin. Throws Error when a file cannot be written.
void lay_out(const Attack&, const Places&, bool as_twin, const std::filesystem::path& folder);

// The same for a twin that is a folder of its own, or the textbook.
void lay_out_twin(const Attack&, const Places&, const std::filesystem::path& folder);

// Takes away what the extras "left" made.
void remove_left(const Attack&);

// The spec with the attack's cases alone, and those rules that they can answer.
ChallengeSpec narrowed(const ChallengeSpec&, const std::vector<std::string>& cases);

}  // namespace assay::attack

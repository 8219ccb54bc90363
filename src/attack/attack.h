// tests/attacks/<id>_<name>/ -> Attack: a hostile submission, and its outcome if the harness is
// sound.
//
// The first lines of submission.cpp or submission.cu are comments, "// key: value":
//   attack      what it does, in one sentence
//   challenge   the challenge it answers; several names, or "each", make one row per challenge
//   cases       names of the cases to run, separated by blanks; "quick", "timed", "resource" and
//               "core" stand for all cases of that kind, "one-timed", "one-resource", "one-core"
//               and "deterministic" for one of them. "challenge:case" applies to that challenge
//               only and replaces the cases given for all
//   expect      the right outcome: a verdict's code (WA, SV, CE-limit ...), or honest if every case
//               passes and nothing is gained; '|' separates alternatives
//   dimension   its target: correctness, accuracy, performance, resources, completeness or tests.
//               If given, it is graded beside its honest twin
//   twin        "self": the same sources with ATTACK_IS_TWIN 1; else a folder below the root. By
//               default the textbook
//   variants    names separated by blanks, one row each, with ATTACK_VARIANT 0, 1, ...
//   hidden      a text that the compiler's log must not show; may be repeated
//   with        an extra entry in the submission's folder, created for the run: "symlink NAME
//               TARGET", "hardlink NAME", "fifo NAME", "folder NAME" or "file NAME", where \n, \t,
//               \s (a blank) and \xHH stand for bytes. A canary may have "left NAME": a marked file
//               in the folder for temporary files, which no sandboxed submission could leave there
//   tiers       sandbox tiers that guarantee the outcome; by default namespaces and landlock
//   fast        challenges or variants whose rows belong to the fast suite, "none" or, by default,
//               "all"
//   deadline    seconds after which the harness counts as hung
//   kind        the weakness it exploits, for rows that every challenge must have: memory,
//               prediction, order or stops
//   witness     how the suite knows that the mechanism ran. By default the submission says so: it
//               calls witness() of witness.h next to the mechanism; a test.cpp or test.cu has
//               witness() without an include. If nothing can be printed there, one of these; of
//               several lines, one is enough:
//                 verdict CODE    a verdict that only the mechanism causes: SV, PV, MLE, OLE or
//                                 CE-limit
//                 finding TEXT    the outcome's detail contains the text
//                 compiler TEXT   the build log contains the text
//   canary      a mechanism of judgement, see judgement.h: this row does what that mechanism must
//               report, and the suite fails if it does not
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "assay/case.h"
#include "sandbox/sandbox.h"
#include "submission/submission.h"

namespace assay::attack {

inline constexpr double kDeadline = 120;  // seconds

// Name of the outcome in which all cases pass.
inline constexpr char kHonest[] = "honest";

// How the suite knows that an attack's mechanism ran.
struct Witness {
  enum class Kind { line, verdict, finding, compiler };
  Kind kind = Kind::line;
  std::string text;  // empty for Kind::line
};

// The line a submission prints when its mechanism runs, followed by the attack's id.
inline constexpr char kWitnessLine[] = "assay attack witness ";

struct Attack {
  std::string id;    // "M12.inet", or "D01." and a challenge: folder's id, variant or challenge
  std::string name;  // the folder's name without the id: "sockets"
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

// The rows of one folder. Throws Error with file and line if the header is malformed, or names an
// unknown challenge, case, verdict, dimension or tier.
std::vector<Attack> read_attack(const std::filesystem::path& folder,
                                const std::vector<ChallengeSpec>& specs);

// The rows of all folders whose names begin with a capital letter and a digit, sorted by folder.
// Also throws Error if there are none.
std::vector<Attack> load_attacks(const std::filesystem::path& folder,
                                 const std::vector<ChallengeSpec>& specs);

// The attacks named by an id ("M12.inet") or a folder's id ("M12"), or if there is none, those
// whose id begins so ("M"), in their original order; all if no name is given. Throws Error for a
// name that matches none, suggesting the nearest one.
std::vector<Attack> choose(const std::vector<Attack>&, const std::vector<std::string>& names);

// Where the files of attacks come from.
struct Places {
  std::filesystem::path root;  // with submissions/textbook
  std::filesystem::path attacks;

  std::filesystem::path textbook(const std::string& challenge) const;
};

// Writes the submission to `folder`, which must not exist: the attack's files, with ATTACK_ID,
// ATTACK_VARIANT and ATTACK_IS_TWIN defined at the top of the main one; honest.inl (the textbook's
// answer) and target.h (targets/<challenge>.h) if they exist; the headers of shared/; and `extras`,
// unless it is the twin. Throws Error if a file cannot be written.
void lay_out(const Attack&, const Places&, bool as_twin, const std::filesystem::path& folder);

// The same for the twin, which may also be another folder or the textbook.
void lay_out_twin(const Attack&, const Places&, const std::filesystem::path& folder);

// Removes the files created by "left" extras.
void remove_left(const Attack&);

// The spec reduced to the attack's cases and the resource rules that still have cases.
ChallengeSpec narrowed(const ChallengeSpec&, const std::vector<std::string>& cases);

}  // namespace assay::attack

#include "attack/attack.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "assay/error.h"
#include "assay/results.h"
#include "attack/leftovers.h"
#include "attack/mechanism.h"
#include "spec/spec.h"
#include "util/files.h"
#include "util/text.h"

namespace assay::attack {
namespace fs = std::filesystem;
namespace {

constexpr char kSelf[] = "self", kEach[] = "each", kAll[] = "all", kNone[] = "none";
const std::vector<std::string> kDimensions{"correctness", "accuracy",     "performance",
                                           "resources",   "completeness", "tests"};
const std::vector<std::string> kKeys{"attack", "challenge", "cases",    "expect",  "dimension",
                                     "twin",   "variants",  "hidden",   "with",    "tiers",
                                     "fast",   "kind",      "deadline", "witness", "canary"};
const std::vector<std::string> kKinds{"memory", "prediction", "order", "stops"};
// Verdicts that a submission gets only for a specific act, not for being broken.
const std::vector<std::string> kTelling{"SV", "PV", "MLE", "OLE", "CE-limit"};

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> found;
  for (std::string word; in >> word;) found.push_back(word);
  return found;
}

std::string trimmed(const std::string& text) {
  const std::size_t from = text.find_first_not_of(" \t");
  return from == std::string::npos ? ""
                                   : text.substr(from, text.find_last_not_of(" \t\r") - from + 1);
}

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// The header's values by key. Errors name the line.
class Header {
 public:
  explicit Header(const fs::path& file) : file_(file) {
    std::istringstream in(read_file(file));
    std::string line, key;
    while (std::getline(in, line) && line.starts_with("//")) {
      ++lines_;
      const std::string text = trimmed(line.substr(2));
      const std::size_t colon = text.find(": ");
      const std::string name = colon == std::string::npos ? "" : text.substr(0, colon);
      const bool is_key = !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
        return std::islower(c) != 0;
      });
      if (is_key) {
        if (!holds(kKeys, name)) fail(unknown_name("key", name, kKeys));
        key = name;
        values_[key].push_back(trimmed(text.substr(colon + 1)));
      } else if (key.empty()) {
        fail("the first line must say '// attack: what it does'");
      } else if (key == "attack") {
        values_[key].back() += " " + text;  // a sentence may take several lines
      } else {
        fail("expected '// key: value'");
      }
    }
    for (const char* needed : {"attack", "challenge", "cases", "expect"}) {
      if (!values_.contains(needed)) fail(fmt::format("'// {}:' is missing", needed));
    }
  }

  std::string one(const std::string& key, const std::string& otherwise = "") const {
    const auto at = values_.find(key);
    if (at == values_.end()) return otherwise;
    if (at->second.size() > 1) fail(fmt::format("'{}' stands there twice", key));
    return at->second.front();
  }
  std::vector<std::string> all(const std::string& key) const {
    const auto at = values_.find(key);
    return at == values_.end() ? std::vector<std::string>{} : at->second;
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(fmt::format("{}:{}: {}", file_.string(), std::max(lines_, 1), what));
  }

 private:
  fs::path file_;
  std::map<std::string, std::vector<std::string>> values_;
  int lines_ = 0;
};

const ChallengeSpec& spec_of(const Header& header, const std::vector<ChallengeSpec>& specs,
                             const std::string& name) {
  std::vector<std::string> known;
  for (const ChallengeSpec& spec : specs) {
    if (spec.name == name) return spec;
    known.push_back(spec.name);
  }
  header.fail(unknown_name("challenge", name, known));
}

// The header's words for cases, for one challenge: words "challenge:case" apply to that challenge
// only and replace those for all.
std::vector<std::string> words_for(const Header& header, const ChallengeSpec& spec,
                                   const std::vector<ChallengeSpec>& specs) {
  std::vector<std::string> own, common;
  for (const std::string& word : words(header.one("cases"))) {
    const std::size_t colon = word.find(':');
    if (colon == std::string::npos) {
      common.push_back(word);
    } else if (spec_of(header, specs, word.substr(0, colon)).name == spec.name) {
      own.push_back(word.substr(colon + 1));
    }
  }
  return own.empty() ? common : own;
}

std::vector<std::string> cases_of(const Header& header, const ChallengeSpec& spec,
                                  const std::vector<ChallengeSpec>& specs, Language language) {
  std::vector<std::string> names;
  const auto add_if = [&](const std::function<bool(const CaseSpec&)>& wanted, bool one) {
    for (const CaseSpec& c : spec.cases) {
      if (language == Language::cuda && !c.on_simulator) continue;
      if (!c.external.empty() || !wanted(c)) continue;
      names.push_back(c.name);
      if (one) return;
    }
  };
  const auto timed = [](const CaseSpec& c) { return c.group == CaseGroup::timed && !c.exclusive; };
  const auto core = [](const CaseSpec& c) { return c.group == CaseGroup::core; };
  const auto resource = [](const CaseSpec& c) {
    return c.group == CaseGroup::resource && !c.exclusive;
  };
  for (const std::string& word : words_for(header, spec, specs)) {
    if (word == "quick") {
      add_if([](const CaseSpec& c) { return c.quick; }, false);
    } else if (word == "timed") {
      add_if(timed, false);
    } else if (word == "one-timed") {
      // The timed case of a quick run is the cheapest.
      add_if([&](const CaseSpec& c) { return timed(c) && c.quick; }, true);
    } else if (word == "core") {
      add_if(core, false);
    } else if (word == "one-core") {
      add_if(core, true);
    } else if (word == "resource") {
      add_if([](const CaseSpec& c) { return c.group == CaseGroup::resource; }, false);
    } else if (word == "one-resource") {
      add_if(resource, true);
    } else if (word == "deterministic") {
      add_if([](const CaseSpec& c) { return c.deterministic; }, true);
    } else if (find_case(spec, word) != nullptr) {
      names.push_back(word);
    } else {
      std::vector<std::string> known;
      for (const CaseSpec& c : spec.cases) known.push_back(c.name);
      header.fail(unknown_name("case", word, known));
    }
  }
  if (names.empty()) header.fail(fmt::format("{} has no such case", spec.name));
  return names;
}

std::vector<std::string> outcomes_of(const Header& header) {
  std::vector<std::string> outcomes;
  std::istringstream in(header.one("expect"));
  for (std::string part; std::getline(in, part, '|');) {
    const std::string outcome = trimmed(part);
    if (outcome != kHonest && !verdict_from_code(outcome)) {
      header.fail(fmt::format("'{}' is neither a verdict's code nor '{}'", outcome, kHonest));
    }
    outcomes.push_back(outcome);
  }
  return outcomes;
}

std::vector<sandbox::Tier> tiers_of(const Header& header) {
  std::vector<sandbox::Tier> tiers;
  for (const std::string& word : words(header.one("tiers", "namespaces landlock"))) {
    if (word == "namespaces") {
      tiers.push_back(sandbox::Tier::namespaces);
    } else if (word == "landlock") {
      tiers.push_back(sandbox::Tier::landlock);
    } else if (word == "none") {
      tiers.push_back(sandbox::Tier::none);
    } else {
      header.fail(unknown_name("tier", word, {"namespaces", "landlock", "none"}));
    }
  }
  return tiers;
}

std::vector<std::string> kinds_of(const Header& header) {
  std::vector<std::string> kinds = words(header.one("kind"));
  for (const std::string& kind : kinds) {
    if (!holds(kKinds, kind)) header.fail(unknown_name("kind", kind, kKinds));
  }
  return kinds;
}

Witness witness_in(const Header& header, const std::string& line, const Attack& attack) {
  const std::size_t blank = line.find(' ');
  const std::string kind = line.substr(0, blank);
  Witness witness;
  witness.text = blank == std::string::npos ? "" : trimmed(line.substr(blank));
  if (kind == "verdict") {
    witness.kind = Witness::Kind::verdict;
    if (!holds(kTelling, witness.text) || !attack.may_be(witness.text)) {
      header.fail(
          fmt::format("witness: '{}' is no verdict that is expected and that only the "
                      "mechanism brings; those are {}",
                      witness.text, fmt::join(kTelling, ", ")));
    }
  } else if (kind == "finding" || kind == "compiler") {
    witness.kind = kind == "finding" ? Witness::Kind::finding : Witness::Kind::compiler;
    if (witness.text.empty()) header.fail(fmt::format("witness: {} needs a text", kind));
  } else {
    header.fail(unknown_name("witness", kind, {"verdict", "finding", "compiler"}));
  }
  return witness;
}

std::vector<Witness> witnesses_of(const Header& header, const Attack& attack) {
  std::vector<Witness> witnesses;
  for (const std::string& line : header.all("witness"))
    witnesses.push_back(witness_in(header, line, attack));
  if (witnesses.empty()) witnesses.emplace_back();
  return witnesses;
}

// "a\sb" -> "a b"
std::string unescaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    switch (const char c = text[++i]) {
      case 'n': out += '\n'; break;
      case 't': out += '\t'; break;
      case 's': out += ' '; break;
      case 'x':
        out += static_cast<char>(std::strtol(text.substr(i + 1, 2).c_str(), nullptr, 16));
        i += 2;
        break;
      default: out += c;
    }
  }
  return out;
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) fail_with_errno("write", path);
}

fs::path left_file(const std::string& name) {
  return fs::temp_directory_path() / (std::string(kMark) + "-" + name);
}

void add_extra(const Attack& attack, const fs::path& folder, const std::string& line) {
  const std::vector<std::string> part = words(line);
  const auto fail = [&](const std::string& why) {
    throw Error(fmt::format("{}: 'with: {}': {}", attack.folder.string(), line, why));
  };
  if (part.size() < 2) fail("expected a kind and a name");
  const fs::path path = folder / unescaped(part[1]);
  const std::string& kind = part[0];
  if (kind == "symlink" && part.size() == 3) {
    fs::create_symlink(part[2], path);
  } else if (kind == "hardlink") {
    fs::create_hard_link(folder / main_file(attack.language), path);
  } else if (kind == "fifo") {
    if (::mkfifo(path.c_str(), 0600) != 0) fail_with_errno("make", path);
  } else if (kind == "folder") {
    fs::create_directory(path);
  } else if (kind == "file") {
    write(path, "// nothing\n");
  } else if (kind == "left") {
    if (attack.canary.empty()) fail("only a canary may leave something");
    write(left_file(part[1]), "left\n");
  } else {
    fail("expected symlink NAME TARGET, or hardlink, fifo, folder or file and a NAME");
  }
}

// Adds the files that every attack may include.
void add_shared(const Attack& attack, const Places& places, const fs::path& folder) {
  const fs::path honest = places.textbook(attack.challenge) / main_file(attack.language);
  if (fs::exists(honest)) write(folder / "honest.inl", read_file(honest));
  const fs::path target = places.attacks / "targets" / (attack.challenge + ".h");
  if (fs::exists(target) && attack.language == Language::cpp) {
    write(folder / "target.h", read_file(target));
  }
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(places.attacks / "shared", ec)) {
    if (entry.path().extension() == ".h")
      write(folder / entry.path().filename(), read_file(entry.path()));
  }
}

// The code of witness.h, to paste into tests, which are compiled without the files beside them.
std::string witness_code(const Places& places) {
  const fs::path file = places.attacks / "shared" / "witness.h";
  if (!fs::exists(file)) return "";
  std::string code = read_file(file);
  const std::string once = "#pragma once\n";
  if (const std::size_t at = code.find(once); at != std::string::npos) code.erase(at, once.size());
  return code;
}

void make(const fs::path& folder) {
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec) throw Error(fmt::format("cannot make {}: {}", folder.string(), ec.message()));
}

}  // namespace

bool Attack::may_be(const std::string& outcome) const { return holds(expected, outcome); }

std::vector<Attack> read_attack(const fs::path& folder, const std::vector<ChallengeSpec>& specs) {
  const Language language =
      fs::exists(folder / main_file(Language::cpp)) ? Language::cpp : Language::cuda;
  const Header header(folder / main_file(language));
  const std::string whole = folder.filename();
  const std::size_t end = whole.find('_');
  if (end == std::string::npos || end + 1 == whole.size())
    header.fail("the folder's name is no ID_NAME");

  Attack base;
  base.id = whole.substr(0, end);
  base.name = whole.substr(end + 1);
  base.folder = folder;
  base.language = language;
  base.what = header.one("attack");
  base.expected = outcomes_of(header);
  base.dimension = header.one("dimension");
  if (!base.dimension.empty() && !holds(kDimensions, base.dimension)) {
    header.fail(unknown_name("dimension", base.dimension, kDimensions));
  }
  base.twin = header.one("twin");
  for (const std::string& text : header.all("hidden")) base.hidden.push_back(unescaped(text));
  base.extras = header.all("with");
  base.tiers = tiers_of(header);
  base.deadline =
      std::strtod(header.one("deadline", fmt::format("{}", kDeadline)).c_str(), nullptr);
  if (!(base.deadline > 0)) header.fail("a deadline is a number of seconds");
  base.kinds = kinds_of(header);
  base.witnesses = witnesses_of(header, base);
  base.canary = header.one("canary");
  if (!base.canary.empty() && !mechanism_named(base.canary))
    header.fail(unknown_name("canary", base.canary, mechanism_names()));

  std::vector<std::string> challenges = words(header.one("challenge"));
  if (challenges == std::vector<std::string>{kEach}) {
    challenges.clear();
    for (const ChallengeSpec& spec : specs) challenges.push_back(spec.name);
  }
  std::vector<std::string> variants = words(header.one("variants"));
  const std::vector<std::string> fast = words(header.one("fast", kAll));
  const bool many = header.one("challenge") == kEach || challenges.size() > 1;
  if (variants.empty()) variants.emplace_back();
  for (const std::string& name : fast) {
    if (name != kAll && name != kNone && !holds(challenges, name) && !holds(variants, name))
      header.fail(fmt::format("fast: '{}' is none of its challenges and variants", name));
  }
  std::vector<Attack> rows;
  for (const std::string& challenge : challenges) {
    const ChallengeSpec& spec = spec_of(header, specs, challenge);
    for (std::size_t v = 0; v < variants.size(); ++v) {
      Attack row = base;
      row.challenge = challenge;
      row.cases = cases_of(header, spec, specs, language);
      row.variant = static_cast<int>(v);
      if (many) row.id += "." + challenge;
      if (!variants[v].empty()) row.id += "." + variants[v];
      row.fast = holds(fast, kAll) || holds(fast, challenge) || holds(fast, variants[v]);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::vector<Attack> load_attacks(const fs::path& folder, const std::vector<ChallengeSpec>& specs) {
  std::error_code ec;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    const std::string name = entry.path().filename();
    const bool is_attack = name.size() > 1 &&
                           std::isupper(static_cast<unsigned char>(name[0])) != 0 &&
                           std::isdigit(static_cast<unsigned char>(name[1])) != 0;
    if (is_attack && entry.is_directory()) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  std::vector<Attack> attacks;
  for (const fs::path& path : found) {
    for (Attack& attack : read_attack(path, specs)) attacks.push_back(std::move(attack));
  }
  if (attacks.empty()) {
    throw Error(fmt::format(
        "no attacks in {}: they lie in the source tree; name its tests/attacks with --attacks",
        folder.string()));
  }
  for (std::size_t i = 0; i < attacks.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (attacks[i].id == attacks[j].id) {
        throw Error(fmt::format("{} and {} have the same id {}", attacks[j].folder.string(),
                                attacks[i].folder.string(), attacks[i].id));
      }
    }
  }
  return attacks;
}

namespace {

// "M12" of "M12.inet".
std::string row_of(const Attack& attack) { return attack.id.substr(0, attack.id.find('.')); }

// A row, one of its variants, or a folder.
bool is_named(const Attack& attack, const std::string& name) {
  const std::string row = row_of(attack);
  return attack.id == name || row == name || row + "_" + attack.name == name;
}

// "T0" is how T01 to T09 begin.
bool begins_with(const Attack& attack, const std::string& name) {
  return row_of(attack).starts_with(name);
}

// The places of those that match, in order.
std::set<std::size_t> matches(const std::vector<Attack>& attacks, const std::string& name,
                              bool (*match)(const Attack&, const std::string&)) {
  std::set<std::size_t> found;
  for (std::size_t i = 0; i < attacks.size(); ++i) {
    if (match(attacks[i], name)) found.insert(i);
  }
  return found;
}

}  // namespace

std::vector<Attack> choose(const std::vector<Attack>& attacks,
                           const std::vector<std::string>& names) {
  if (names.empty()) return attacks;
  std::vector<std::string> ids;
  for (const Attack& attack : attacks) ids.push_back(attack.id);
  std::set<std::size_t> taken;
  for (const std::string& name : names) {
    std::set<std::size_t> found = matches(attacks, name, &is_named);
    if (found.empty()) found = matches(attacks, name, &begins_with);
    if (found.empty())
      throw Error(unknown_name("attack", name, ids) + "; assay attack --list shows all");
    taken.merge(found);
  }
  std::vector<Attack> chosen;
  for (const std::size_t i : taken) chosen.push_back(attacks[i]);
  return chosen;
}

fs::path Places::textbook(const std::string& challenge) const {
  return root / "submissions" / "textbook" / challenge;
}

void lay_out(const Attack& attack, const Places& places, bool as_twin, const fs::path& folder) {
  make(folder);
  add_shared(attack, places, folder);
  for (const auto& entry : fs::directory_iterator(attack.folder)) {
    const std::string name = entry.path().filename();
    std::string text = read_file(entry.path());
    if (name == tests_file(attack.language)) text.insert(0, witness_code(places));
    if (name == main_file(attack.language) || name == tests_file(attack.language)) {
      text = fmt::format(
          "#define ATTACK_ID \"{}\"\n#define ATTACK_IS_TWIN {}\n#define ATTACK_VARIANT {}\n{}",
          attack.id, as_twin ? 1 : 0, attack.variant, text);
    }
    write(folder / name, text);
  }
  if (as_twin) return;
  for (const std::string& line : attack.extras) add_extra(attack, folder, line);
}

void lay_out_twin(const Attack& attack, const Places& places, const fs::path& folder) {
  if (attack.twin == kSelf) return lay_out(attack, places, true, folder);
  make(folder);
  const fs::path from =
      attack.twin.empty() ? places.textbook(attack.challenge) : places.root / attack.twin;
  const fs::path file = from / main_file(attack.language);
  if (!fs::exists(file)) {
    throw Error(
        fmt::format("{}: its twin {} does not exist", attack.folder.string(), file.string()));
  }
  for (const auto& entry : fs::directory_iterator(from)) {
    if (entry.is_regular_file()) write(folder / entry.path().filename(), read_file(entry.path()));
  }
}

void remove_left(const Attack& attack) {
  for (const std::string& line : attack.extras) {
    const std::vector<std::string> part = words(line);
    std::error_code ec;
    if (part.size() == 2 && part[0] == "left") fs::remove(left_file(part[1]), ec);
  }
}

ChallengeSpec narrowed(const ChallengeSpec& whole, const std::vector<std::string>& cases) {
  ChallengeSpec spec = whole;
  std::erase_if(spec.cases, [&](const CaseSpec& c) { return !holds(cases, c.name); });
  for (ResourceRule& rule : spec.resources) {
    std::erase_if(rule.case_names, [&](const std::string& name) { return !holds(cases, name); });
  }
  std::erase_if(spec.resources, [](const ResourceRule& rule) { return rule.case_names.empty(); });
  return spec;
}

}  // namespace assay::attack

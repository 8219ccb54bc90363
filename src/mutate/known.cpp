#include "mutate/known.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "assay/error.h"
#include "spec/json_schema.h"
#include "util/files.h"

namespace assay::mutate {
namespace {

constexpr std::array kExcuses{Excuse::same_result, Excuse::within_accuracy,
                              Excuse::optional,    Excuse::outside_contract,
                              Excuse::cost,        Excuse::quality};

Excuse excuse_from(const std::string& name) {
  // The schema allows no other names.
  return *std::ranges::find(kExcuses, name, [](Excuse e) { return std::string(to_string(e)); });
}

}  // namespace

const char* to_string(Excuse excuse) {
  switch (excuse) {
    case Excuse::same_result: return "same_result";
    case Excuse::within_accuracy: return "within_accuracy";
    case Excuse::optional: return "optional";
    case Excuse::outside_contract: return "outside_contract";
    case Excuse::cost: return "cost";
    case Excuse::quality: return "quality";
  }
  return "?";
}

bool KnownMutant::is(const std::string& answer, const Mutation& m) const {
  return of == answer && file == m.file_name && line == m.before && becomes == m.after &&
         (!nth || *nth == m.nth);
}

std::vector<KnownMutant> parse_known_mutants(const std::string& text, const std::string& file) {
  const nlohmann::json document = parse_json(text, file);
  validate_json(document, kMutantsSchema, file);
  std::vector<KnownMutant> known;
  std::set<std::tuple<std::string, std::string, std::string, std::string, int>> seen;
  for (const nlohmann::json& j : document.at("mutants")) {
    KnownMutant m;
    m.of = j.at("of");
    m.file = j.at("file");
    m.line = j.at("line");
    m.becomes = j.at("becomes");
    if (j.contains("nth")) m.nth = j.at("nth").get<int>();
    m.excuse = excuse_from(j.at("excuse"));
    m.reason = j.at("reason");
    if (!seen.emplace(m.of, m.file, m.line, m.becomes, m.nth.value_or(0)).second) {
      throw Error(fmt::format("{}: at /mutants/{}: the mutant '{}' is listed twice: remove one",
                              file, known.size(), m.becomes));
    }
    known.push_back(std::move(m));
  }
  return known;
}

std::vector<KnownMutant> load_known_mutants(const std::filesystem::path& challenge) {
  const std::filesystem::path file = challenge / "mutants.json";
  if (!std::filesystem::exists(file)) return {};
  return parse_known_mutants(read_file(file), file.string());
}

const KnownMutant* find_known(const std::vector<KnownMutant>& known, const std::string& of,
                              const Mutation& m) {
  const auto found = std::ranges::find_if(known, [&](const KnownMutant& k) { return k.is(of, m); });
  return found == known.end() ? nullptr : &*found;
}

std::vector<const KnownMutant*> unmatched(const std::vector<KnownMutant>& known,
                                          const std::string& of, const std::vector<Mutation>& all) {
  std::vector<const KnownMutant*> left;
  for (const KnownMutant& k : known) {
    const bool matches =
        k.of != of || std::ranges::any_of(all, [&](const Mutation& m) { return k.is(of, m); });
    if (!matches) left.push_back(&k);
  }
  return left;
}

}  // namespace assay::mutate

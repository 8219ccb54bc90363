#include "task/harbor.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "assay/error.h"
#include "task/flatten.h"
#include "task/skeleton.h"
#include "util/files.h"

namespace assay::task {
namespace {

namespace fs = std::filesystem;
using Files = std::map<std::string, std::string>;  // path in the task -> contents

// Quotes a text as a TOML basic string.
std::string toml_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\u{:04X}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

// If every case ran to its limit, and each timed one as often as it is repeated, that would take
// hours; a right answer takes minutes. At least half an hour, because machines differ.
double verifier_seconds(const ChallengeSpec& spec) {
  double seconds = spec.limits.build_time_s * 4;
  for (const CaseSpec& c : spec.cases) seconds += c.time_limit_s;
  constexpr double kLeast = 1800;
  return std::ceil(std::max(kLeast, seconds));
}

std::string task_toml(const ChallengeSpec& spec, Language language) {
  constexpr std::int64_t kMebi = 1 << 20;
  const std::int64_t memory = 2048 + 2 * spec.limits.memory_bytes / kMebi;
  return fmt::format(
      R"(schema_version = "1.1"

[task]
name = {}
description = {}
keywords = ["kernels", "performance", {}]

[metadata]
difficulty = {}
category = "programming"

[verifier]
timeout_sec = {:.1f}

[agent]
timeout_sec = 7200.0

[environment]
build_timeout_sec = 1200.0
cpus = {}
memory_mb = {}
storage_mb = 10240
)",
      toml_string("assay/" + spec.name + (language == Language::cuda ? "_cuda" : "")),
      toml_string(spec.summary), toml_string(spec.name), toml_string(spec.difficulty),
      verifier_seconds(spec), spec.limits.threads, memory);
}

// The package's libraries are installed in the image, so that the tests need no network.
std::string dockerfile(const HarborOptions& o) {
  return fmt::format(R"(FROM {}
RUN apt-get update && apt-get install -y --no-install-recommends \
      g++ libcpp-httplib0.11 libcurl4 libfmt9 liblzma5 libseccomp2 libssl3 python3 && \
    rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY abi.h {} /app/
)",
                     o.image, main_file(o.language));
}

std::string test_script(const ChallengeSpec& spec, const HarborOptions& o) {
  return fmt::format(R"(#!/bin/sh
# Grades /app with assay: the reward is the score, 0 to 1. A fault of the harness is no reward.
logs=${{HARBOR_LOGS:-/logs/verifier}}
assay=${{ASSAY:-assay}}
mkdir -p "$logs" || exit 2
if ! command -v "$assay" >/dev/null; then
  dpkg -i "$(dirname "$0")/assay.deb" >"$logs/install.log" 2>&1 || exit 2
fi
app=${{HARBOR_APP:-/app}}
# An agent that took its answer away has none.
if [ ! -e "$app/{1}" ] && [ ! -L "$app/{1}" ]; then
  echo 0.0000 >"$logs/reward.txt"
  exit 0
fi
"$assay" grade "$app" -c {0} --device {2} --json >"$logs/grade.json" || exit 2
python3 - "$logs" <<'EOF' || exit 2
import json, pathlib, sys
logs = pathlib.Path(sys.argv[1])
total = json.loads((logs / "grade.json").read_text())["total"]
if total is None:
    sys.exit("a part of the grade was not measured: see grade.json")
(logs / "reward.txt").write_text(f"{{total / 100:.4f}}\n")
EOF
)",
                     spec.name, main_file(o.language), o.language == Language::cpp ? "cpu" : "sim");
}

// The folders below challenges/NAME and challenges/ whose headers the solution may include, by the
// path in front of the headers' names.
std::vector<std::pair<fs::path, std::string>> header_folders(const fs::path& challenge, bool cpp) {
  const fs::path baselines = challenge / "baselines", shared = "shared/baselines";
  return {{baselines / (cpp ? "par" : "naive"), cpp ? "par/" : "naive/"},
          {baselines / "common", "common/"},
          {challenge.parent_path() / shared, shared.string() + "/"}};
}

// Rewrites includes, because an answer's files are all in one folder.
std::string in_one_folder(std::string text, const fs::path& challenge, bool cpp) {
  for (const auto& [folder, prefix] : header_folders(challenge, cpp)) {
    const std::string before = "#include \"" + prefix, after = "#include \"";
    for (std::size_t at = 0; (at = text.find(before, at)) != std::string::npos; at += after.size())
      text.replace(at, before.size(), after);
  }
  return text;
}

void add_solution(const Source& source, const HarborOptions& o, Files& files) {
  const bool cpp = o.language == Language::cpp;
  const fs::path challenge = source.spec.directory;
  const fs::path main = challenge / "baselines" / (cpp ? "par.cpp" : "naive.cu");
  files[std::string("solution/") + main_file(o.language)] =
      in_one_folder(read_file(main), challenge, cpp);
  for (const auto& [folder, prefix] : header_folders(challenge, cpp)) {
    if (!fs::is_directory(folder)) continue;
    for (const auto& header : fs::directory_iterator(folder)) {
      const std::string ending = header.path().extension();
      if (ending != ".h" && !(ending == ".cuh" && !cpp)) continue;
      const std::string name = "solution/" + header.path().filename().string();
      if (files.contains(name))
        throw Error(fmt::format("{}: another header of the solution has that name",
                                header.path().string()));
      files[name] = in_one_folder(read_file(header.path()), challenge, cpp);
    }
  }
  files["solution/solve.sh"] =
      "#!/bin/sh\n# The challenge's own implementation.\nset -e\n"
      "cd \"$(dirname \"$0\")\"\ncp *.cpp *.cu *.cuh *.h \"${HARBOR_APP:-/app}\" 2>/dev/null || "
      "true\n" +
      fmt::format("test -e \"${{HARBOR_APP:-/app}}/{}\"\n", main_file(o.language));
}

Files files_of(const Source& source, const HarborOptions& o) {
  const std::string interface =
      flattened(fs::path(source.spec.directory) / "abi.h", source.root / "include");
  Files files;
  files["instruction.md"] =
      prompt_of(source, {{o.language}}) +
      fmt::format(
          "\n## Where\n\nWrite the answer to `/app/{}`; further files may lie beside it. "
          "`/app/abi.h` is there already, and the file holds a skeleton.\n",
          main_file(o.language));
  files["task.toml"] = task_toml(source.spec, o.language);
  files["environment/Dockerfile"] = dockerfile(o);
  files["environment/abi.h"] = interface;
  files[std::string("environment/") + main_file(o.language)] =
      skeleton(interface, source.spec.required_symbols, o.language);
  files["tests/test.sh"] = test_script(source.spec, o);
  files["tests/assay.deb"] = read_file(o.package);
  add_solution(source, o, files);
  return files;
}

}  // namespace

void export_harbor(const Source& source, const HarborOptions& o, const fs::path& folder) {
  if (fs::exists(fs::symlink_status(folder)) &&
      !(fs::is_directory(folder) && fs::is_empty(folder))) {
    throw Error(
        fmt::format("{} is there already: name another folder with --into", folder.string()));
  }
  const Files files = files_of(source, o);
  for (const auto& [path, contents] : files) {
    create_folder((folder / path).parent_path());
    write_file_atomically(folder / path, contents);
    if (path.ends_with(".sh")) fs::permissions(folder / path, fs::perms(0755));
  }
}

}  // namespace assay::task

#include "cells/code_facts.h"

#include <vector>

#include "code/facts.h"

namespace assay::cells {

std::optional<CodeFacts> code_facts(const Submission& submission, const BuildResult& built) {
  std::vector<sources::NamedSource> files;
  for (const SourceFile& file : submission.sources) files.push_back({file.name, file.contents});
  std::optional<CodeFacts> facts = sources::facts_of(files);
  if (facts) facts->warnings = built.warnings;
  return facts;
}

}  // namespace assay::cells

// What a piece of C++ or CUDA defines, and the names of files in text; by looking, not by parsing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::intake {

// The same text with comments and the insides of literals blanked; lines stay where they are.
std::string without_comments_and_literals(std::string_view code);

// Those of the functions that are defined, not only declared or called, in what the function above
// returned; in the order of `names`.
std::vector<std::string> functions_defined(std::string_view bare_code,
                                           const std::vector<std::string>& names);

bool has_word(std::string_view text, std::string_view word);

// Words that are names of files of well-known kinds, without their folders: "submission.cpp",
// "helper.h", "build.sh".
std::vector<std::string> file_names_in(std::string_view text);

// The file that a line of prose names, such as "### `submission.cpp`" or "File: helper.h"; "" where
// it names none, several, or says something else about one.
std::string file_named_by(std::string_view line);
// The same of the comment that begins a file; "" where the first line is none.
std::string file_named_by_comment(std::string_view first_line);

std::string_view trimmed(std::string_view text);
std::string lower(std::string_view text);

}  // namespace assay::intake

// Finds function definitions in C++ or CUDA code, and file names in text, heuristically and without
// parsing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::intake {

// The same text with comments and the contents of literals blanked; line positions are preserved.
std::string without_comments_and_literals(std::string_view code);

// The functions of `names`, in that order, that are defined, not just declared or called, in the
// output of the function above.
std::vector<std::string> functions_defined(std::string_view bare_code,
                                           const std::vector<std::string>& names);

bool has_word(std::string_view text, std::string_view word);

// Words that are file names of well-known kinds, without folders: "submission.cpp", "helper.h",
// "build.sh".
std::vector<std::string> file_names_in(std::string_view text);

// The file that a line of prose names, such as "### `submission.cpp`" or "File: helper.h"; "" if it
// names none or several, or says something else about one.
std::string file_named_by(std::string_view line);
// The same for the comment at the start of a file; "" if the first line is not a comment.
std::string file_named_by_comment(std::string_view first_line);

std::string_view trimmed(std::string_view text);
std::string lower(std::string_view text);

}  // namespace assay::intake

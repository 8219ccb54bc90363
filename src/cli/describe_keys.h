// Describes the keys of JSON files from their schema, so that the manual page always lists them all.
#pragma once

#include <string>
#include <string_view>

namespace assay::cli {

// A list of the keys of each kind of document in a draft-07 schema whose top level is "oneOf" over
// its "definitions", in groff's man macros: a subsection for each document and for each record that
// they refer to. Documents named in `superseded` are left out. Throws Error if the schema refers to
// what it does not define.
std::string man_keys(std::string_view schema, std::string_view superseded);

}  // namespace assay::cli

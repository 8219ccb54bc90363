// Grades published by others: letters or points per model and challenge, with their source. They
// are shown beside measured grades, never mixed with them.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "assay/results.h"

namespace assay::compare {

struct PublishedGrade {
  std::string letter;  // "A-"; empty if the grade is points
  double value = 0;    // points, or the grade point of the letter
};

struct PublishedPlace {
  int rank = 0;
  std::string model;
  std::string average;     // as published: a letter, two ("A-/B+"), or points; may be empty
  std::string challenges;  // as published: "7/8"; may be empty
};

struct Published {
  static constexpr int kSchema = 1;

  std::string source;  // who published it, where, and how it was graded
  bool letters = true;
  std::map<std::string, std::map<std::string, PublishedGrade>> grades;  // model -> challenge
  std::vector<PublishedPlace> ranking;                                  // by rank; may be empty
};

// The grade point of a letter on the usual scale of 4: A 4, A- 3.7, B+ 3.3 ... F 0; nothing if it
// is not a grade. nearest_letter() is the nearest letter for a grade point.
std::optional<double> grade_point(const std::string& letter);
std::string nearest_letter(double grade_point);
// The value of a published average: a letter, the mean of two ("A-/B+"), or a number.
std::optional<double> average_value(const std::string&);

// JSON: {"schema": 1, "kind": "published_grades", "source": "...", "grades": {"MODEL":
// {"CHALLENGE": "A-" or 87.5}}, "ranking": [{"rank": 1, "model": "MODEL", "average": "A-/B+",
// "challenges": "7/8"}]}; the ranking may be missing. CSV: a header with the columns model,
// challenge and grade, in any order; it requires `source`, which overrides the source in JSON. All
// grades are letters, or all are points from 0 to 100. Throws Error naming the file, the place and
// the cause. Text beginning with '{' is JSON.
Published parse_published(const std::string& text, const std::string& file,
                          const std::string& source = "");
std::string published_text(const Published&);  // JSON as above

// Averages and ranks recomputed from the grades.
struct Recomputed {
  struct Place {
    std::string model;
    double average = 0;
    std::size_t challenges = 0;
    int rank = 0;            // 1 + the models with a higher average
    int published_rank = 0;  // 0: none
    std::string published_average;
  };
  std::vector<Place> places;                // by rank, then name
  std::vector<std::string> contradictions;  // sentences with their numbers; names are untrusted
};

// Averages over each model's graded challenges. Contradictions: a published order that the averages
// reverse (also stated over the challenges both have); a published average further than a tolerance
// from the recomputed one (kStep for letters, 1 for points); a published number of challenges that
// is not the number of grades; a ranked model without a grade, or the reverse.
inline constexpr double kStep = 0.2;  // grade points: more than half a letter's step
Recomputed recompute(const Published&);

}  // namespace assay::compare

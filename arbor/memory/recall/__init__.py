"""The rules of recall: queries parsed, candidates ranked, score components weighted."""

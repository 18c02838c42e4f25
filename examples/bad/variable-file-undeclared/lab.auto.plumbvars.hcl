pmd_core = "3"

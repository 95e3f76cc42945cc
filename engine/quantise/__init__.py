"""From numbers to the blocks of quantised formats. Arrays in, arrays out: knows no models and no files."""

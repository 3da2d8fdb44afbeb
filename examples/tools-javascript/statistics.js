// A KAMI tool in JavaScript: count, mean and median of numbers.

export const tool = {
  run(input) {
    // What is thrown as a text is the error of `run`; anything else that is thrown ends the tool.
    try {
      return JSON.stringify(statistics(numbersOf(JSON.parse(input))));
    } catch (error) {
      throw `invalid input: ${error.message}`;
    }
  },

  describe() {
    return JSON.stringify({
      name: "dev.example.statistics",
      version: "1.0.0",
      description: "Answers with count, mean and median of numbers",
    });
  },
};

function numbersOf(input) {
  const numbers = input?.numbers;
  if (!Array.isArray(numbers) || !numbers.every(Number.isFinite) || numbers.length === 0) {
    throw new Error("`numbers` has to be a list of numbers, one at least");
  }
  return numbers;
}

function statistics(numbers) {
  const sorted = numbers.toSorted((a, b) => a - b);
  const half = sorted.length / 2;
  const median = (sorted[Math.ceil(half) - 1] + sorted[Math.floor(half)]) / 2;
  const mean = sorted.reduce((sum, number) => sum + number, 0) / sorted.length;
  return { count: sorted.length, mean, median };
}

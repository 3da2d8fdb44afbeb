// A KAMI tool in JavaScript: turns a title into a name for addresses and files.

export const tool = {
  run(input) {
    // What is thrown as a text is the `err` of the WIT's `result<string, string>`.
    let title;
    try {
      title = JSON.parse(input).title;
    } catch (error) {
      throw `invalid input: ${error.message}`;
    }
    if (typeof title !== "string") {
      throw "invalid input: `title` is missing or no text";
    }
    return JSON.stringify({ slug: slugify(title) });
  },

  describe() {
    return JSON.stringify({
      name: "dev.example.slugify",
      version: "1.0.0",
      description: "Turns a title into a name for addresses and files",
    });
  },
};

function slugify(title) {
  const accents = /[\u0300-\u036f]/g;
  const plain = title.normalize("NFKD").replace(accents, "").toLowerCase();
  return plain.replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
}

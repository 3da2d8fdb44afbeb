// Writes what the TypeScript compiler says about calls: `node truth-typescript.cjs ROOT > truth.tsv`.
//
// For each call, construction and JSX element the compiler's own `getResolvedSignature` names the declaration.
// A row is the outermost named function around the call and the function that is called, each as a path and the
// line of its name. Line 0 stands for code outside of functions. Declarations outside of ROOT are `external`; what
// the compiler cannot tell (`any`) is `unknown`, by the line of the call: those calls are not judged.
const ts = require("typescript");
const fs = require("fs");
const path = require("path");

const root = path.resolve(process.argv[2]);
const files = [];
(function walk(dir) {
  for (const entry of fs.readdirSync(dir, { withFileTypes: true })) {
    const full = path.join(dir, entry.name);
    if (entry.isDirectory()) {
      if (entry.name !== "node_modules") walk(full);
    } else if (/\.(ts|tsx|mts|cts)$/.test(entry.name)) files.push(full);
  }
})(root);

const program = ts.createProgram(files, {
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  jsx: ts.JsxEmit.Preserve,
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  experimentalDecorators: true,
});
const checker = program.getTypeChecker();
const relative = (file) => path.relative(root, file.fileName).split(path.sep).join("/");
const line = (node) => {
  const file = node.getSourceFile();
  return file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1;
};

function isValue(node) {
  return ts.isArrowFunction(node) || ts.isFunctionExpression(node);
}

function unwrapped(node) {
  let at = node.parent;
  while (at && (ts.isParenthesizedExpression(at) || ts.isAsExpression(at) || ts.isSatisfiesExpression(at))) at = at.parent;
  return at;
}

// The node of the name that a function is known by, if it has one.
function nameOf(node) {
  if (ts.isFunctionDeclaration(node)) return node.name;
  if (ts.isConstructorDeclaration(node)) return node;
  if (ts.isMethodDeclaration(node) || ts.isMethodSignature(node) || ts.isGetAccessor(node) || ts.isSetAccessor(node)) {
    const holder = node.parent;
    if (ts.isObjectLiteralExpression(holder) && !isNamedObject(holder)) return undefined;
    return node.name;
  }
  if (isValue(node)) {
    const at = unwrapped(node);
    if (at && ts.isVariableDeclaration(at) && ts.isIdentifier(at.name)) return at.name;
    if (at && ts.isPropertyDeclaration(at)) return at.name;
    if (at && ts.isPropertyAssignment(at) && isNamedObject(at.parent)) return at.name;
  }
  return undefined;
}

function isNamedObject(object) {
  const at = unwrapped(object);
  return at && ts.isVariableDeclaration(at) && ts.isIdentifier(at.name);
}

function callerLine(node) {
  let found = 0;
  for (let at = node.parent; at; at = at.parent) {
    const name = nameOf(at);
    if (name) found = line(name);
  }
  return found;
}

// Of several declarations of one function the one with the body.
function implementation(declaration) {
  if (declaration.body) return declaration;
  const name = declaration.name;
  const symbol = ts.isConstructorDeclaration(declaration)
    ? undefined
    : name && checker.getSymbolAtLocation(name);
  const all = ts.isConstructorDeclaration(declaration)
    ? declaration.parent.members.filter(ts.isConstructorDeclaration)
    : (symbol && symbol.declarations) || [];
  return all.find((it) => it.body) || declaration;
}

function target(node) {
  const signature = checker.getResolvedSignature(node);
  let declaration = signature && signature.declaration;
  if (!declaration && ts.isNewExpression(node)) {
    const type = checker.getTypeAtLocation(node);
    const symbol = type.symbol;
    declaration = symbol && symbol.declarations && symbol.declarations.find(ts.isClassDeclaration);
    if (declaration && inside(declaration)) return declaration.name && [declaration, declaration.name];
  }
  if (!declaration) return undefined;
  if (!inside(declaration)) return null;
  declaration = implementation(declaration);
  const name = nameOf(declaration);
  if (name) return [declaration, name];
  // A function type of a property: the property is what is called.
  const at = declaration.parent;
  if (at && (ts.isPropertySignature(at) || ts.isPropertyDeclaration(at))) return [at, at.name];
  return undefined;
}

const inside = (node) => {
  const name = node.getSourceFile().fileName;
  return name.startsWith(root + path.sep) && !name.includes("/node_modules/") ;
};

const rows = new Set();
for (const file of program.getSourceFiles()) {
  if (file.isDeclarationFile && !file.fileName.startsWith(root)) continue;
  if (!file.fileName.startsWith(root + path.sep) || file.fileName.includes("node_modules/") && !root.includes("node_modules")) continue;
  (function visit(node) {
    const isCall =
      ts.isCallExpression(node) || ts.isNewExpression(node) ||
      ((ts.isJsxOpeningElement(node) || ts.isJsxSelfClosingElement(node)) && /^[A-Z]/.test(node.tagName.getText(file)));
    if (isCall && !(ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword)) {
      const from = `${relative(file)}:${callerLine(node)}`;
      let to;
      try {
        const found = target(node);
        if (found === null) to = "external";
        else if (!found) to = `unknown:${line(node)}`;
        else to = `${relative(found[0].getSourceFile())}:${line(found[1])}`;
      } catch {
        to = `unknown:${line(node)}`;
      }
      if (to !== "external") rows.add(`${from}\t${to}`);
    }
    ts.forEachChild(node, visit);
  })(file);
}
console.log([...rows].sort().join("\n"));

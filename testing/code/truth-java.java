// Writes what the Java compiler says about calls:
// java --add-exports jdk.compiler/com.sun.tools.javac.tree=ALL-UNNAMED truth-java.java ROOT > truth.tsv
//
// For each call and construction javac names the method. A row is the outermost method around the call and the method
// that is called, each as a path and the line of its name; the class, where no constructor is written. Line 0 stands
// for code outside of methods. What is outside of ROOT gives no row; what javac cannot tell, because a library is
// missing, is `unknown`, by the line of the call: those calls are not judged.

import com.sun.source.tree.*;
import com.sun.source.util.*;
import com.sun.tools.javac.tree.JCTree;
import java.nio.file.*;
import java.util.*;
import java.util.regex.*;
import java.util.stream.*;
import javax.lang.model.element.*;
import javax.lang.model.type.TypeKind;
import javax.tools.*;

class Truth {
    static Path root;
    static Trees trees;
    static final Map<CompilationUnitTree, String> texts = new HashMap<>();

    public static void main(String[] args) throws Exception {
        root = Path.of(args[0]).toRealPath();
        List<Path> files;
        try (Stream<Path> all = Files.walk(root)) {
            files = all.filter(it -> it.toString().endsWith(".java") && !it.endsWith("module-info.java")).sorted().toList();
        }
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        StandardJavaFileManager manager = compiler.getStandardFileManager(null, null, null);
        List<String> options = List.of("-proc:none", "-implicit:none", "-Xmaxerrs", "100000");
        JavacTask task = (JavacTask) compiler.getTask(null, manager, it -> {}, options, null, manager.getJavaFileObjectsFromPaths(files));
        trees = Trees.instance(task);
        List<CompilationUnitTree> units = new ArrayList<>();
        for (CompilationUnitTree unit : task.parse()) units.add(unit);
        task.analyze();
        TreeSet<String> rows = new TreeSet<>();
        for (CompilationUnitTree unit : units) {
            texts.put(unit, unit.getSourceFile().getCharContent(true).toString());
            new Calls(unit, rows).scan(unit, null);
        }
        rows.forEach(System.out::println);
    }

    static String path(CompilationUnitTree unit) {
        return root.relativize(Path.of(unit.getSourceFile().toUri())).toString();
    }

    static long line(CompilationUnitTree unit, long position) {
        return unit.getLineMap().getLineNumber(position);
    }

    // The line of the name of a method or class.
    static long nameLine(CompilationUnitTree unit, Tree tree) throws Exception {
        if (tree instanceof ClassTree type) {
            String text = texts.containsKey(unit) ? texts.get(unit) : unit.getSourceFile().getCharContent(true).toString();
            int start = (int) trees.getSourcePositions().getStartPosition(unit, tree);
            Matcher found = Pattern.compile("\\b(class|interface|enum|record)\\s+(" + type.getSimpleName() + ")\\b").matcher(text);
            return found.find(start) ? line(unit, found.start(2)) : line(unit, start);
        }
        return line(unit, ((JCTree) tree).pos);
    }

    static class Calls extends TreePathScanner<Void, Void> {
        final CompilationUnitTree unit;
        final Set<String> rows;

        Calls(CompilationUnitTree unit, Set<String> rows) {
            this.unit = unit;
            this.rows = rows;
        }

        @Override
        public Void visitMethodInvocation(MethodInvocationTree node, Void none) {
            ExpressionTree select = node.getMethodSelect();
            long at = trees.getSourcePositions().getStartPosition(unit, node);
            if (select instanceof IdentifierTree name) {
                // A constructor that calls none has a call of `super()` that nobody wrote.
                String text = texts.get(unit);
                if (at < 0 || !text.startsWith(name.getName().toString(), (int) at)) return super.visitMethodInvocation(node, none);
            }
            long line = line(unit, ((JCTree) select).pos);
            if (select instanceof MemberSelectTree) line = line(unit, trees.getSourcePositions().getEndPosition(unit, select) - 1);
            add(new TreePath(getCurrentPath(), select), line, null);
            return super.visitMethodInvocation(node, none);
        }

        @Override
        public Void visitNewClass(NewClassTree node, Void none) {
            long line = line(unit, trees.getSourcePositions().getStartPosition(unit, node));
            add(getCurrentPath(), line, node);
            return super.visitNewClass(node, none);
        }

        void add(TreePath path, long line, NewClassTree made) {
            try {
                String from = path(unit) + ":" + caller(path);
                Element element = trees.getElement(path);
                // A class without a name: what it extends is made.
                if (made != null && made.getClassBody() != null) {
                    element = trees.getElement(new TreePath(path, made.getIdentifier()));
                    if (element == null || trees.getPath(element) == null) return;
                    rows.add(from + "\tunknown:" + line);
                    return;
                }
                if (element == null || element.asType().getKind() == TypeKind.ERROR) {
                    rows.add(from + "\tunknown:" + line);
                    return;
                }
                TreePath target = trees.getPath(element);
                boolean isWritten = target != null && target.getLeaf() instanceof MethodTree method && isWritten(target.getCompilationUnit(), method);
                if (!isWritten) target = trees.getPath(element.getEnclosingElement());
                if (target == null) return;
                rows.add(from + "\t" + Truth.path(target.getCompilationUnit()) + ":" + nameLine(target.getCompilationUnit(), target.getLeaf()));
            } catch (Exception cause) {
                throw new IllegalStateException(cause);
            }
        }

        static boolean isWritten(CompilationUnitTree unit, MethodTree method) throws Exception {
            int at = ((JCTree) method).pos;
            String name = method.getName().contentEquals("<init>") ? null : method.getName().toString();
            String text = unit.getSourceFile().getCharContent(true).toString();
            if (name != null) return text.startsWith(name, at);
            // A constructor has the name of its class.
            return Pattern.compile("\\w+\\s*[({]").matcher(text).region(at, Math.min(text.length(), at + 200)).lookingAt()
                && trees.getSourcePositions().getEndPosition(unit, method) > at;
        }

        long caller(TreePath path) throws Exception {
            long found = 0;
            for (TreePath at = path; at != null; at = at.getParentPath()) {
                if (at.getLeaf() instanceof MethodTree method && isWritten(unit, method)) found = nameLine(unit, method);
            }
            return found;
        }
    }
}

/** docs/reference/api.md: the names that index.ts exports, with their doc comments and signatures. */
import { type Declaration, SourceFile } from './declarations.ts';

const introduction = `# API reference

Every name that \`factorflow\` exports, from the comments in the source, and the options and results that these name: those are reached as
\`Parameters<Dataset['timeSplit']>[0]\` or \`Awaited<ReturnType<Model['foldIn']>>\`. [concepts.md](../concepts.md) says how the parts fit together.
`;

const PARTS = 'Options and results of these';

export function apiPage(root: string): string {
  const file = sourceFiles(root);
  const exported = exportedBy(file);
  const values = exported.filter((declaration) => !isType(declaration));
  const types = exported.filter(isType);
  const parts = namedBy(exported, file);
  return [
    introduction,
    contents('Classes and functions', values),
    contents('Types', types),
    contents(PARTS, parts),
    section('Classes and functions', values),
    section('Types', types),
    section(PARTS, parts),
  ].join('\n');
}

function isType({ kind }: Declaration): boolean {
  return kind === 'interface' || kind === 'type';
}

function contents(title: string, declarations: readonly Declaration[]): string {
  return `${title}: ${declarations.map(({ name }) => `[${name}](#${name.toLowerCase()})`).join(', ')}\n`;
}

function section(title: string, declarations: readonly Declaration[]): string {
  const parts = declarations.map(
    ({ name, doc, code, file }) =>
      `### ${name}\n\n${doc === '' ? '' : `${markdownOf(doc)}\n\n`}\`\`\`ts\n${code}\n\`\`\`\n\n\`${file}\`\n`,
  );
  return [`## ${title}\n`, ...parts].join('\n');
}

/**
 * Classes and types that the signatures of `declarations` use, and those that these use in turn. Declarations
 * of the engine are left out: they are for custom operators, and editors show them.
 */
function namedBy(declarations: readonly Declaration[], file: (path: string) => SourceFile): Declaration[] {
  const known = new Set(declarations.map(({ name }) => name));
  const found: Declaration[] = [];
  for (let frontier = declarations; frontier.length > 0;) {
    frontier = frontier
      .flatMap((declaration) => namesIn(declaration, file))
      .filter(({ name, file: path }) => !path.startsWith('engine/') && !known.has(name) && known.add(name));
    found.push(...frontier);
  }
  return found;
}

function sourceFiles(root: string): (path: string) => SourceFile {
  const files = new Map<string, SourceFile>();
  return (path) => {
    const known = files.get(path) ?? new SourceFile(root, path);
    files.set(path, known);
    return known;
  };
}

function exportedBy(file: (path: string) => SourceFile): Declaration[] {
  return file('index.ts')
    .reexports()
    .map(({ name, from }) => file(from).declaration(name));
}

function namesIn({ code, file: path }: Declaration, file: (path: string) => SourceFile): Declaration[] {
  const words = new Set(code.replaceAll(/\/\*\*.*?\*\/|'[^'\n]*'/gs, '').match(/\b[A-Z]\w+/g));
  return [...words].flatMap((word) => {
    const source = file(path);
    const from = source.importOf(word);
    return (from === undefined ? source.find(word) : file(from).find(word)) ?? [];
  });
}

/** Text that Markdown does not parse as HTML; code spans are unchanged. */
function markdownOf(doc: string): string {
  return doc
    .split(/(`[^`]*`)/)
    .map((part, i) => (i % 2 === 0 ? part.replaceAll('<', '&lt;') : part))
    .join('');
}

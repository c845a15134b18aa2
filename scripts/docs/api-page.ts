/** docs/reference/api.md: the names that index.ts exports, with their doc comments and signatures. */
import { type Declaration, SourceFile } from './declarations.ts';

const introduction = `# API reference

Every name that \`factorflow\` exports, from the comments in the source. [concepts.md](../concepts.md) says how the parts fit together.
`;

export function apiPage(root: string): string {
  const exported = exportedBy(sourceFiles(root));
  const values = exported.filter(({ kind }) => kind !== 'interface' && kind !== 'type');
  const types = exported.filter(({ kind }) => kind === 'interface' || kind === 'type');
  return [
    introduction,
    contents('Classes and functions', values),
    contents('Types', types),
    section('Classes and functions', values),
    section('Types', types),
  ].join('\n');
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
 * Names of the project that signatures of exported names use, and their own signatures in turn, and that
 * index.ts does not export.
 */
export function unexportedNames(root: string): string[] {
  const file = sourceFiles(root);
  const exported = exportedBy(file);
  const known = new Set(exported.map(({ name }) => name));
  const missing: string[] = [];
  for (let frontier = exported; frontier.length > 0;) {
    frontier = frontier
      .flatMap((declaration) => namesIn(declaration, file))
      .filter(({ name }) => !known.has(name) && known.add(name));
    missing.push(...frontier.map(({ name, file: path }) => `${name} of ${path}`));
  }
  return missing;
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

/** Text that Markdown does not read as HTML; code spans stay unchanged. */
function markdownOf(doc: string): string {
  return doc
    .split(/(`[^`]*`)/)
    .map((part, i) => (i % 2 === 0 ? part.replaceAll('<', '&lt;') : part))
    .join('');
}

/** docs/api.md: the names that index.ts exports, with their doc comments and signatures. */
import { type Declaration, SourceFile } from './declarations.ts';

/** Most steps from the names of index.ts to the other types that their signatures use. */
const STEPS = 1;

const introduction = `# API reference

Every name that \`factorflow\` exports, from the comments in the source. [concepts.md](concepts.md) says how the parts fit together.
`;

export function apiPage(root: string): string {
  const files = new Map<string, SourceFile>();
  const file = (path: string) => {
    const known = files.get(path) ?? new SourceFile(root, path);
    files.set(path, known);
    return known;
  };
  const exported = file('index.ts').reexports().map(({ name, from }) => file(from).declaration(name));
  const values = exported.filter(({ kind }) => kind !== 'interface' && kind !== 'type');
  const types = exported.filter(({ kind }) => kind === 'interface' || kind === 'type');
  const others = referenced(exported, file);
  return [
    introduction,
    contents('Classes and functions', values),
    contents('Types', types),
    section('Classes and functions', values),
    section('Types', types),
    section('Types that these use', others, 'Signatures above name them; `factorflow` does not export them.'),
  ].join('\n');
}

function contents(title: string, declarations: readonly Declaration[]): string {
  return `${title}: ${declarations.map(({ name }) => `[${name}](#${name.toLowerCase()})`).join(', ')}\n`;
}

function section(title: string, declarations: readonly Declaration[], lead?: string): string {
  const parts = declarations.map(({ name, doc, code, file }) => `### ${name}\n\n${doc === '' ? '' : `${markdownOf(doc)}\n\n`}\`\`\`ts\n${code}\n\`\`\`\n\n[${file}](../${file})\n`);
  return [`## ${title}\n`, ...(lead === undefined ? [] : [`${lead}\n`]), ...parts].join('\n');
}

/** Small types of the project that the signatures name and index.ts does not export, by name. */
function referenced(exported: readonly Declaration[], file: (path: string) => SourceFile): Declaration[] {
  const known = new Map(exported.map((declaration) => [declaration.name, declaration]));
  let frontier = exported;
  for (let step = 0; step < STEPS; step++) {
    const next = frontier.flatMap((declaration) => typesIn(declaration, file)).filter(({ name }) => !known.has(name));
    for (const declaration of next) known.set(declaration.name, declaration);
    frontier = next;
  }
  const names = new Set(exported.map(({ name }) => name));
  return [...known.values()].filter(({ name }) => !names.has(name)).sort((left, right) => (left.name < right.name ? -1 : 1));
}

function typesIn({ code, file: path }: Declaration, file: (path: string) => SourceFile): Declaration[] {
  const words = new Set(code.replaceAll(/\/\*\*.*?\*\//gs, '').match(/\b[A-Z]\w+/g));
  return [...words].flatMap((word) => {
    const source = file(path);
    const from = source.importOf(word);
    const found = from === undefined ? source.find(word) : file(from).find(word);
    return found === undefined || (found.kind !== 'type' && found.kind !== 'interface') ? [] : [found];
  });
}

/** Text that Markdown does not read as HTML; code spans stay unchanged. */
function markdownOf(doc: string): string {
  return doc.split(/(`[^`]*`)/).map((part, i) => (i % 2 === 0 ? part.replaceAll('<', '&lt;') : part)).join('');
}

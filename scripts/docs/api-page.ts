/**
 * docs/reference/api.md: the names that index.ts exports, with their doc comments and signatures, as the built
 * declarations of the package have them.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from '@babel/parser';

const introduction = `# API reference

Every name that \`factorflow\` exports, from the comments in the source, and the options and results that these name: those are reached as
\`Parameters<Dataset['timeSplit']>[0]\` or \`Awaited<ReturnType<Model['foldIn']>>\`. [concepts.md](../concepts.md) says how the parts fit together.
`;

const PARTS = 'Options and results of these';

interface Declaration {
  readonly name: string;
  /** The doc comment with its marks; empty without one. */
  readonly comment: string;
  /** The declaration as TypeScript, with the comments of members. */
  readonly code: string;
  readonly isType: boolean;
}

export function apiPage(root: string): string {
  const declared = declarationsOf(readFileSync(join(root, 'dist/types/index.d.ts'), 'utf8'));
  const exported = exportedNames(root).map((name) => declared.get(name)!);
  const values = exported.filter(({ isType }) => !isType);
  const types = exported.filter(({ isType }) => isType);
  const parts = namedBy(exported, declared, engineNames(root));
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

/** The names that index.ts exports, in its order. */
export function exportedNames(root: string): string[] {
  const text = readFileSync(join(root, 'index.ts'), 'utf8');
  return [...text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, names]) =>
    [...names.matchAll(/(\w+)\s*(?:,|$)/g)].map(([, name]) => name),
  );
}

/** The declarations of a .d.ts file by name, without private members. */
function declarationsOf(text: string): ReadonlyMap<string, Declaration> {
  const declared = new Map<string, Declaration>();
  const { body } = parse(text, { sourceType: 'module', plugins: [['typescript', { dts: true }]] }).program;
  for (const statement of body) {
    const node = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement;
    if (!node) continue;
    const { id } = node.type === 'VariableDeclaration' ? node.declarations[0] : 'id' in node ? node : {};
    if (!id || !('name' in id)) continue;
    const name = String(id.name);
    const comment = statement.leadingComments?.at(-1)?.value ?? '';
    const code = text
      .slice(node.start!, node.end!)
      .replace(/^declare /, '')
      .replace(/^const (\w+): ([(<][^]*?\)) => /, 'function $1$2: ');
    declared.set(name, {
      name,
      comment: comment.startsWith('*') ? `/*${comment}*/\n` : '',
      code: code.replaceAll(/^ {2}(#private|private .*);\n/gm, ''),
      isType: node.type.startsWith('TS'),
    });
  }
  return new Map([...declared].map(([name, one]) => [name, withFunctions(one, declared)]));
}

/** An object of functions with their signatures in place of `readonly abs: typeof abs`. */
function withFunctions(one: Declaration, declared: ReadonlyMap<string, Declaration>): Declaration {
  const code = one.code.replaceAll(/^ {2}readonly (\w+): typeof \1;$/gm, (member, name: string) => {
    const found = declared.get(name);
    const signature = found?.code.replace(/^function /, '');
    return found ? `${found.comment}${signature}`.replaceAll(/^/gm, '  ') : member;
  });
  return { ...one, code };
}

/** Names that only the engine has: they are for custom operators, and editors show them. */
function engineNames(root: string): ReadonlySet<string> {
  const namesIn = (pattern: string) => {
    const files = globSync(pattern, { cwd: join(root, 'build/types') });
    const texts = files.map((file) => readFileSync(join(root, 'build/types', file), 'utf8')).join('\n');
    const found = texts.matchAll(
      /^(?:export )?(?:declare )?(?:abstract )?(?:const|class|interface|type) (\w+)/gm,
    );
    return new Set(Array.from(found, ([, name]) => name));
  };
  const others = namesIn('{api,connectors,operators}/**/*.d.ts');
  return new Set([...namesIn('engine/**/*.d.ts')].filter((name) => !others.has(name)));
}

/** The types that signatures refer to, directly or through other types, without excluded names. */
function namedBy(
  declarations: readonly Declaration[],
  declared: ReadonlyMap<string, Declaration>,
  leftOut: ReadonlySet<string>,
): Declaration[] {
  const known = new Set([...leftOut, ...declarations.map(({ name }) => name)]);
  const found: Declaration[] = [];
  for (let frontier = declarations; frontier.length > 0;) {
    frontier = frontier.flatMap(({ code }) => {
      const words = new Set(code.replaceAll(/\/\*\*.*?\*\/|'[^'\n]*'/gs, '').match(/\b[A-Z][\w$]+/g));
      return [...words].flatMap((word) => {
        const named = declared.get(word);
        return named !== undefined && !known.has(word) && known.add(word) ? [named] : [];
      });
    });
    found.push(...frontier);
  }
  return found;
}

function contents(title: string, declarations: readonly Declaration[]): string {
  return `${title}: ${declarations.map(({ name }) => `[${name}](#${name.toLowerCase()})`).join(', ')}\n`;
}

function section(title: string, declarations: readonly Declaration[]): string {
  const parts = declarations.map(({ name, comment, code }) => {
    const doc = comment.replaceAll(/^\/\*\*|\s*\*\/$|^\s*\* ?|[^\S\n]+$/gm, '').trim();
    return `### ${name}\n\n${doc === '' ? '' : `${markdownOf(doc)}\n\n`}\`\`\`ts\n${code}\n\`\`\`\n`;
  });
  return [`## ${title}\n`, ...parts].join('\n');
}

/** Text that Markdown does not parse as HTML; code spans are unchanged. */
function markdownOf(doc: string): string {
  return doc
    .split(/(`[^`]*`)/)
    .map((part, i) => (i % 2 === 0 ? part.replaceAll('<', '&lt;') : part))
    .join('');
}

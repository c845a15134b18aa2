/** The pages of the documentation's site: which file of the project is which page. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, dirname, join, posix } from 'node:path';

/** Pages outside docs/, by their files. */
const others: Readonly<Record<string, string>> = {
  'README.md': 'index.md',
  'ARCHITECTURE.md': 'inside/architecture.md',
  'operators/README.md': 'inside/operators.md',
  'operators/als/README.md': 'inside/als.md',
  'engine/README.md': 'inside/engine.md',
  'gpu/README.md': 'inside/gpu.md',
  'CONTRIBUTING.md': 'inside/contributing.md',
  'CHANGELOG.md': 'changelog.md',
  'SECURITY.md': 'security.md',
};

/** Pages of the side bar, in the order in which users need them. */
export const guide = {
  Start: [
    'getting-started',
    'questions',
    'concepts',
    'choosing',
    'implicit',
    'attributes',
    'coming-from',
    'trouble',
  ],
  Data: ['prepare-data', 'group-join-sort', 'expressions', 'folders', 'reference/formats'],
  Quality: ['evaluating', 'ranking', 'summary', 'reports'],
  Production: [
    'serving',
    'browser',
    'retraining',
    'checkpoints',
    'embedding',
    'bundlers',
    'sizing',
    'plan',
    'gpu',
    'python',
    'spark',
  ],
  Facts: ['guarantees', 'security', 'dependencies', 'changelog'],
  Measured: [
    'measured/performance',
    'measured/quality',
    'measured/published-tables',
    'measured/table5',
    'measured/reliability',
  ],
  Inside: [
    'inside/architecture',
    'inside/operators',
    'inside/als',
    'sgd',
    'inside/engine',
    'inside/gpu',
    'invariants',
    'inside/contributing',
  ],
};
export const reference = ['reference/cli', 'reference/api', 'reference/worker-protocol'];

/** Pages by the files that they show: Markdown as it is, examples as code. */
export function sitePages(root: string): ReadonlyMap<string, string> {
  const pages = new Map(Object.entries(others));
  for (const file of globSync('docs/**/*.md', { cwd: root }).toSorted()) {
    const page = file.slice('docs/'.length).replace(/(^|\/)README\.md$/, '$1index.md');
    pages.set(file, page === 'index.md' ? 'contents.md' : page);
  }
  for (const file of globSync('examples/*.ts', { cwd: root }).toSorted())
    pages.set(file, `examples/${basename(file, '.ts')}.md`);
  return pages;
}

/** The text of a page, from its file. */
export function pageText(root: string, file: string): string {
  const text = readFileSync(join(root, file), 'utf8');
  if (!file.endsWith('.ts')) return text;
  const name = basename(file);
  return `---\neditLink: false\n---\n\n# ${name}\n\n\`\`\`ts\n${text}\`\`\`\n`;
}

export interface LinkTarget {
  readonly file: string;
  readonly pages: ReadonlyMap<string, string>;
  readonly root: string;
  /** Address of the repository's files, which are not pages. */
  readonly repository: string;
}

/**
 * A link of a project's file as a link of its page. Links to files that are not pages go to the repository;
 * a file that does not exist is an error.
 */
export function siteLink(href: string, { file, pages, root, repository }: LinkTarget): string {
  if (/^[a-z]+:|^#/.test(href)) return href;
  const [path, anchor] = href.split('#');
  const target = posix.normalize(posix.join(dirname(file), decodeURI(path))).replace(/\/$/, '');
  const hash = anchor === undefined ? '' : `#${anchor}`;
  const page = pages.get(target) ?? pages.get(`${target}/README.md`);
  if (page !== undefined) return `${posix.relative(dirname(pages.get(file) ?? ''), page)}${hash}`;
  if (target.startsWith('docs/pictures/')) {
    const picture = target.slice('docs/'.length);
    return `./${posix.relative(dirname(pages.get(file) ?? ''), picture)}`;
  }
  if (!existsSync(join(root, target))) throw new Error(`${file} has a link to ${href}, which does not exist`);
  return `${repository}/${target}${hash}`;
}

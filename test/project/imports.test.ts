/** The direction of imports that ARCHITECTURE.md draws, and what code that may run in a browser one day must not touch. */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const folders = ['cli', 'api', 'connectors', 'operators', 'engine', 'cpu', 'gpu'] as const;

/** What each folder may import from, itself aside. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  'index.ts': ['api', 'connectors', 'operators', 'engine'],
  cli: ['index.ts', 'api', 'connectors', 'operators', 'engine', 'cpu', 'gpu'],
  api: ['connectors', 'operators', 'engine', 'cpu', 'gpu'],
  connectors: ['engine'],
  operators: ['engine'],
  cpu: ['engine'],
  gpu: ['engine'],
  engine: [],
};

/** The devices know the tasks of factorization by their types only. */
const typeOnly = [{ from: ['cpu', 'gpu'], to: 'operators/tasks.ts' }];

/** What a GPU's kernels are checked against: their twins on the CPU. */
const checked = { from: 'gpu/checks/', to: 'cpu/reference/' };

interface Import {
  readonly file: string;
  readonly target: string;
  readonly typesOnly: boolean;
}

const files = ['index.ts', ...folders.flatMap((folder) => globSync(`${folder}/**/*.ts`, { cwd: root }))].filter((file) => !file.startsWith('cpu/assembly/'));

function importsOf(file: string): Import[] {
  const source = readFileSync(join(root, file), 'utf8');
  const statement = /(?:^|\n)\s*(import|export)(\s+type)?\s[^;'"]*?from\s+['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]\s*\)|(?:^|\n)import\s+['"]([^'"]+)['"]/g;
  return [...source.matchAll(statement)].map((match) => ({
    file,
    target: (match[3] ?? match[4] ?? match[5]).startsWith('.') ? relative(root, resolve(root, dirname(file), match[3] ?? match[4] ?? match[5])) : (match[3] ?? match[4] ?? match[5]),
    typesOnly: match[2] !== undefined,
  }));
}

const folderOf = (path: string) => (path === 'index.ts' ? path : path.split('/')[0]);
const imports = files.flatMap(importsOf);

describe('imports', () => {
  it('are found at all', () => {
    expect(imports.length).toBeGreaterThan(200);
  });

  it('go in one direction', () => {
    const wrong = imports.filter(({ file, target, typesOnly }) => {
      const [from, to] = [folderOf(file), folderOf(target)];
      if (!(folders as readonly string[]).includes(to) && to !== 'index.ts') return false;
      if (from === to || allowed[from].includes(to)) return false;
      if (file.startsWith(checked.from) && target.startsWith(checked.to)) return false;
      return !(typesOnly && typeOnly.some((rule) => rule.from.includes(from) && rule.to === target));
    });
    expect(wrong).toEqual([]);
  });

  it('of operators and kernels name no module of Node', () => {
    const isHost = (file: string) => ['cpu/worker.ts', 'cpu/device.ts', 'gpu/worker.ts', 'gpu/device.ts', 'gpu/tuner-cache.ts'].includes(file) || file.startsWith('gpu/probe/') || file.startsWith('gpu/cards/');
    const wrong = imports.filter(({ file, target }) => ['operators', 'cpu', 'gpu'].includes(folderOf(file)) && target.startsWith('node:') && !isHost(file));
    expect(wrong).toEqual([]);
  });

  it('of the engine know nothing of ratings, Parquet or shaders', () => {
    const packages = new Set(imports.filter(({ file, target }) => folderOf(file) === 'engine' && !target.startsWith('engine/')).map(({ target }) => target));
    expect([...packages].sort()).toEqual(['apache-arrow', 'cli-table3', 'node:v8', 'node:vm', 'piscina']);
  });
});

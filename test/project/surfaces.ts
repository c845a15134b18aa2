/**
 * Everything that a user can name, one line each: exports with their members, flags, HTTP routes with their
 * fields, and the parameters of Spark and Python. `node test/project/surfaces.ts` writes them to
 * test/golden/surfaces/. test/project/surface.test.ts compares: a difference is a change for users.
 */
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { commandList, wordsOf } from '../../cli/command-list.ts';
import { flagName } from '../../cli/options/option.ts';
import { openApi } from '../../cli/server/open-api.ts';
import { routes } from '../../cli/server/routes.ts';
import * as library from '../../index.ts';

const root = resolve(import.meta.dirname, '../..');
const textOf = (file: string) => readFileSync(join(root, file), 'utf8');

function exportedNames(): string[] {
  const members = (name: string, value: object | undefined) =>
    Object.getOwnPropertyNames(value ?? {})
      .filter((member) => !/^(length|name|prototype|constructor|_.*)$/.test(member))
      .map((member) => `${name}.${member}`);
  const names = Object.entries(library).flatMap(([name, value]) =>
    typeof value === 'function'
      ? [name, ...members(name, value), ...members(`${name}.prototype`, value.prototype)]
      : [name],
  );
  const { exports } = JSON.parse(textOf('package.json')) as { exports: object };
  return [...names.sort(), ...Object.keys(exports).map((entry) => `package ${entry}`)];
}

async function flags(): Promise<string[]> {
  const commands = await Promise.all(
    commandList.map(async ({ name, load }) => {
      const { options, positionals } = await load();
      const shown = Object.entries(options).map(([key, { alias, choices, hidden, required }]) => {
        const values = choices === undefined ? '' : ` ${choices.join('|')}`;
        const notes = [alias && `-${alias}`, hidden && 'hidden', required && 'required'].filter(Boolean);
        return [`${name} --${flagName(key)}${values}`, ...notes].join(', ');
      });
      return [`${name} ${wordsOf(positionals)}`.trim(), ...shown.sort()];
    }),
  );
  return commands.flat();
}

/** Parameters of each route, and the fields of its bodies and answers. */
function httpFields(): string[] {
  const lines = new Set<string>();
  const visit = (path: string, value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [key, child] of Object.entries(value)) {
      const isName = path.endsWith('properties') || path.split(' ').length < 2;
      if (isName || typeof child?.in === 'string') lines.add(`${path} ${child.name ?? key}`);
      if (key === 'enum') lines.add(`${path} ${(child as unknown[]).join('|')}`);
      visit(`${path} ${key}`, child);
    }
  };
  for (const [route, methods] of Object.entries(openApi(routes, true).paths as object)) {
    for (const [method, route_] of Object.entries(methods as object))
      visit(`${method.toUpperCase()} ${route}`, route_);
  }
  return [...lines].map((line) =>
    line.replaceAll(/ (content|application\/json|schema|properties|items|parameters|anyOf|oneOf)\b/g, ''),
  );
}

/** Methods of classes, and functions. Names and modules that begin with an underscore are private. */
function pythonNames(files: string): string[] {
  const definition = /^( {4})?(class|def) ([A-Za-z]\w*|__init__)(.*?):$/gms;
  const names = globSync(files, { cwd: root }).flatMap((file) =>
    Array.from(textOf(file).matchAll(definition))
      .filter(
        ([, indent, kind]) => indent !== undefined || kind === 'class' || !basename(file).startsWith('_'),
      )
      .map(([, , kind, name, rest]) => `${kind} ${name}${rest!.replace(/\s+/g, ' ')}`),
  );
  return [...new Set(names)].sort();
}

function sparkNames(): string[] {
  const table = 'spark/src/main/resources/io/github/factorflow/spark/als-parameters.json';
  return [...Object.keys(JSON.parse(textOf(table)) as object), ...pythonNames('spark/python/*/*.py')];
}

/** The text of each file in test/golden/surfaces/. */
export async function surfaces(): Promise<Readonly<Record<string, string>>> {
  const lists = {
    exports: exportedNames(),
    flags: await flags(),
    http: httpFields(),
    python: pythonNames('python/factorflow/*.py'),
    spark: sparkNames(),
  };
  return Object.fromEntries(Object.entries(lists).map(([name, lines]) => [name, `${lines.join('\n')}\n`]));
}

if (import.meta.main) {
  const folder = join(root, 'test/golden/surfaces');
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of Object.entries(await surfaces())) {
    writeFileSync(join(folder, `${name}.txt`), text);
  }
}

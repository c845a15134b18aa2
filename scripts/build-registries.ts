/**
 * Writes the handlers of tasks, by name, to cpu/generated/tasks.ts and gpu/generated/tasks.ts: every `export
 * const x: TaskHandler<'name'>` of cpu/tasks, and `GpuTaskHandler` in the `*.task.ts` files of gpu/. Does not
 * rewrite an unchanged file.
 */
import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeChanged } from './write-changed.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

interface Registry {
  readonly folder: 'cpu' | 'gpu';
  readonly files: string;
  readonly handler: string;
  readonly tasks: string;
}

async function write({ folder, files, handler, tasks }: Registry): Promise<void> {
  const declared = new RegExp(`export const (\\w+): ${handler}<'([\\w-]+)'>`, 'g');
  const paths = globSync(files, { cwd: join(root, folder) }).map((path) => path.replaceAll('\\', '/'));
  const imports: string[] = [];
  const handlers: string[] = [];
  for (const path of paths.sort()) {
    const found = [...(await readFile(join(root, folder, path), 'utf8')).matchAll(declared)];
    if (found.length === 0) continue;
    imports.push(`import { ${found.map(([, name]) => name).join(', ')} } from '../${path}';`);
    handlers.push(...found.map(([, name, task]) => `  '${task}': ${name},`));
  }
  const text = `// Made by scripts/build-registries.ts from ${folder}/${files}; don't edit.
import type { ${handler}, ${tasks} } from '../handler.ts';
${imports.join('\n')}

export const handlers = {
${handlers.join('\n')}
} satisfies { readonly [K in keyof ${tasks}]?: ${handler}<K> };
`;
  writeChanged(`${folder}/generated/tasks.ts`, text);
  console.log(`${folder}/generated/tasks.ts: ${handlers.length} tasks`);
}

await write({ folder: 'cpu', files: 'tasks/**/*.ts', handler: 'TaskHandler', tasks: 'CpuTasks' });
await write({ folder: 'gpu', files: '**/*.task.ts', handler: 'GpuTaskHandler', tasks: 'GpuTasks' });

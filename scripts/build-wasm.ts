/**
 * Compiles cpu/assembly to WebAssembly twice, with relaxed SIMD's fused multiply-add and without, and writes
 * both as base64 to cpu/generated/kernels-wasm.ts, with their structs in cpu/generated/structs.ts;
 * cpu/assembly/loading.ts to cpu/generated/loading-wasm.ts;
 * connectors/lines/assembly to connectors/lines/generated/plain-rows-wasm.ts; connectors/parquet/assembly to
 * connectors/parquet/generated/pages-wasm.ts; engine/expressions/assembly to
 * engine/expressions/generated/compare-wasm.ts; and engine/numbers/assembly to
 * engine/numbers/generated/half-wasm.ts. The same sources give the same files, and a file is written only if
 * it changed. Copies one build of parquet-wasm, of the three that the package has.
 */
import { main as compileAssembly } from 'assemblyscript/asc';
import { globSync } from 'node:fs';
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The modules have no runtime, data or globals: they work on the memory that they import. */
const options = [
  '--runtime',
  'minimal',
  '--importMemory',
  '--noExportMemory',
  '-O3',
  '--noAssert',
  '--enable',
  'simd',
  '--enable',
  'bulk-memory',
];
/** Threads share the memory of the kernels. */
const shared = ['--sharedMemory', '--maximumMemory', '65536', '--enable', 'threads'];

interface Compiled {
  /** In base64. */
  readonly code: string;
  /** The compiler's declarations of the exports. */
  readonly declarations: string;
}

async function compile(source: string, more: readonly string[] = []): Promise<Compiled> {
  const files = new Map<string, Uint8Array | string>();
  const args = [
    source,
    '--baseDir',
    root,
    ...options,
    ...more,
    '--bindings',
    'raw',
    '--outFile',
    'module.wasm',
  ];
  const { error, stderr } = await compileAssembly(args, {
    writeFile: (name: string, contents: Uint8Array | string) => void files.set(name, contents),
  });
  const binary = files.get('module.wasm');
  if (error || typeof binary !== 'object')
    throw new Error(`asc failed: ${error?.message ?? 'no output'}\n${stderr.toString()}`);
  return {
    code: Buffer.from(binary).toString('base64'),
    declarations: String(files.get('module.d.ts')),
  };
}

/**
 * The interface of a module's exports, from the compiler's declarations and the comments of the sources. A
 * flag is 0 or 1: the module is used without the compiler's glue code.
 */
async function interfaceOf(name: string, { declarations }: Compiled): Promise<string> {
  const methods = Array.from(
    declarations.matchAll(/\/\*\*\s+\* (\S+)\/\w+\n[^/]*\*\/\s+export function (\w+)(\([^)]*\): \w+);/g),
    async ([, file, method, signature]) => {
      const source = await readFile(join(root, `${file}.ts`), 'utf8');
      const comment = new RegExp(
        `(/\\*\\*(?:(?!\\*/)[^])*\\*/)\\n(?:@\\w+\\n)*export function ${method}\\b`,
      ).exec(source)?.[1];
      const lines = [
        ...(comment?.split('\n') ?? []),
        `${method}${signature.replaceAll('boolean', '0 | 1')};`,
      ];
      return lines.map((line) => `  ${line}\n`).join('');
    },
  );
  return `export interface ${name} {\n${(await Promise.all(methods)).join('')}}\n`;
}

/** Bytes of a field; it is aligned to them. */
const fieldBytes: Readonly<Record<string, number>> = { usize: 4, i32: 4, f32: 4, f64: 8, v128: 16 };

/**
 * Writes the structs of a folder, whose classes are marked `@unmanaged`: for each field its type and its
 * offset, as the compiler places them; and the numbers of its enums.
 */
async function writeStructs(file: string, folder: string): Promise<void> {
  const texts = [`// Made by scripts/build-wasm.ts from ${folder}; don't edit.\n`];
  for (const path of globSync(`${folder}/**/*.ts`, { cwd: root }).sort()) {
    const source = await readFile(join(root, path), 'utf8');
    for (const [, comment, name, body] of source.matchAll(
      /(\/\*\*(?:(?!\*\/)[^])*\*\/\n)export enum (\w+) \{\n([^]*?)\n\}/g,
    )) {
      const members = [...body.matchAll(/\w+/g)].map(([member], number) => `  ${member}: ${number},\n`);
      texts.push(`${comment}export const ${name} = {\n${members.join('')}} as const;\n`);
    }
    for (const [, comment = '', name, body] of source.matchAll(
      /(\/\*\*(?:(?!\*\/)[^])*\*\/\n)?@unmanaged\nexport class (\w+) \{\n([^]*?)\n\}/g,
    )) {
      let end = 0;
      const fields = [...body.matchAll(/^ {2}(\w+): (\w+);$/gm)].map(([, field, type]) => {
        const offset = Math.ceil(end / fieldBytes[type]) * fieldBytes[type];
        end = offset + fieldBytes[type];
        return `    ${field}: ['${type}', ${offset}],\n`;
      });
      const bytes = Math.ceil(end / 16) * 16;
      texts.push(
        `${comment}export const ${name} = {\n  bytes: ${bytes},\n  fields: {\n${fields.join('')}  },\n} as const;\n`,
      );
    }
  }
  await writeChanged(file, texts.join('\n'));
}

async function writeChanged(file: string, text: string): Promise<void> {
  const target = join(root, file);
  if (text === (await readFile(target, 'utf8').catch(() => ''))) return;
  await mkdir(dirname(target), { recursive: true });
  await writeFile(target, text);
}

/** Writes modules that have the same exports, described by an interface. */
async function write(
  file: string,
  sources: string,
  modules: Readonly<Record<string, Compiled>>,
  exportsName: string,
): Promise<void> {
  const lines = Object.entries(modules).map(([name, { code }]) => `export const ${name} = '${code}';\n`);
  const described = await interfaceOf(exportsName, Object.values(modules)[0]);
  const text = `/** Made by scripts/build-wasm.ts from ${sources}; don't edit. */\n${lines.join('')}\n${described}`;
  await writeChanged(file, text);
  const sizes = Object.entries(modules).map(
    ([name, { code }]) => `${name} ${Math.floor((code.length * 3) / 4)} bytes`,
  );
  console.log(`${file}: ${sizes.join(', ')}`);
}

const kernels = 'cpu/assembly/index.ts';
await write(
  'cpu/generated/kernels-wasm.ts',
  'cpu/assembly',
  {
    relaxedSimd: await compile(kernels, [...shared, '--enable', 'relaxed-simd']),
    simd: await compile(kernels, shared),
  },
  'Kernels',
);
await writeStructs('cpu/generated/structs.ts', 'cpu/assembly');
await write(
  'cpu/generated/loading-wasm.ts',
  'cpu/assembly/loading.ts',
  {
    loading: await compile('cpu/assembly/loading.ts'),
  },
  'LoadingKernels',
);
await write(
  'connectors/lines/generated/plain-rows-wasm.ts',
  'connectors/lines/assembly',
  {
    plainRows: await compile('connectors/lines/assembly/plain-rows.ts'),
  },
  'RowKernels',
);
await write(
  'connectors/parquet/generated/pages-wasm.ts',
  'connectors/parquet/assembly',
  {
    pages: await compile('connectors/parquet/assembly/index.ts'),
  },
  'PageFunctions',
);
await write(
  'engine/expressions/generated/compare-wasm.ts',
  'engine/expressions/assembly',
  {
    compare: await compile('engine/expressions/assembly/compare.ts'),
  },
  'CompareFunctions',
);
await write(
  'engine/numbers/generated/half-wasm.ts',
  'engine/numbers/assembly',
  {
    half: await compile('engine/numbers/assembly/half.ts'),
  },
  'HalfFunctions',
);

for (const folder of ['connectors/parquet/generated/', 'dist/connectors/parquet/generated/']) {
  await mkdir(join(root, folder), { recursive: true });
  // Node must not take the script for an ES module.
  for (const [from, to = from] of [['parquet_wasm.js', 'parquet_wasm.cjs'], ['parquet_wasm_bg.wasm']])
    await copyFile(join(root, 'node_modules/parquet-wasm/node', from), join(root, folder, to));
}

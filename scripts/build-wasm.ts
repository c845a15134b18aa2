/**
 * Compiles AssemblyScript to WebAssembly, and writes each module as base64 with the interface of its exports: the
 * table `modules` below; and the structs of the kernels, to cpu/generated/structs.ts. The same sources give the
 * same files. Copies one build of parquet-wasm, of the three that the package has.
 */
import { main as compileAssembly } from 'assemblyscript/asc';
import { globSync } from 'node:fs';
import { copyFile, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeChanged } from './write-changed.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The modules have no runtime, data or globals: they work on the memory that they import. */
const options =
  '--runtime minimal --importMemory --noExportMemory -O3 --noAssert --enable simd --enable bulk-memory'.split(
    ' ',
  );
/** Threads share the memory of the kernels. */
const shared = ['--sharedMemory', '--maximumMemory', '65536', '--enable', 'threads'];

interface Compiled {
  /** In base64. */
  readonly code: string;
  /** The compiler's declarations of the exports. */
  readonly declarations: string;
}

async function compile(source: string, more: readonly string[]): Promise<Compiled> {
  const files = new Map<string, Uint8Array | string>();
  const output = ['--bindings', 'raw', '--outFile', 'module.wasm'];
  const args = [source, '--baseDir', root, ...options, ...more, ...output];
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
  writeChanged(file, texts.join('\n'));
}

interface Module {
  /** The file that is written. */
  readonly file: string;
  /** The names of the compiled texts, with the compiler's flags of each. */
  readonly builds: Readonly<Record<string, readonly string[]>>;
  readonly source: string;
  /** The sources as the file names them. */
  readonly from: string;
  /** The name of the exports' interface. */
  readonly exports: string;
}

/** The kernels have a build with relaxed SIMD's fused multiply-add and one without. */
const modules: readonly Module[] = [
  {
    file: 'cpu/generated/kernels-wasm.ts',
    builds: { relaxedSimd: [...shared, '--enable', 'relaxed-simd'], simd: shared },
    source: 'cpu/assembly/index.ts',
    from: 'cpu/assembly',
    exports: 'Kernels',
  },
  {
    file: 'cpu/generated/loading-wasm.ts',
    builds: { loading: [] },
    source: 'cpu/assembly/loading.ts',
    from: 'cpu/assembly/loading.ts',
    exports: 'LoadingKernels',
  },
  {
    file: 'connectors/lines/generated/plain-rows-wasm.ts',
    builds: { plainRows: [] },
    source: 'connectors/lines/assembly/plain-rows.ts',
    from: 'connectors/lines/assembly',
    exports: 'RowKernels',
  },
  {
    file: 'connectors/parquet/generated/pages-wasm.ts',
    builds: { pages: [] },
    source: 'connectors/parquet/assembly/index.ts',
    from: 'connectors/parquet/assembly',
    exports: 'PageFunctions',
  },
  {
    file: 'engine/expressions/generated/compare-wasm.ts',
    builds: { compare: [] },
    source: 'engine/expressions/assembly/compare.ts',
    from: 'engine/expressions/assembly',
    exports: 'CompareFunctions',
  },
  {
    file: 'engine/numbers/generated/half-wasm.ts',
    builds: { half: [] },
    source: 'engine/numbers/assembly/half.ts',
    from: 'engine/numbers/assembly',
    exports: 'HalfFunctions',
  },
];

for (const { file, builds, source, from, exports } of modules) {
  const compiled: (readonly [string, Compiled])[] = [];
  for (const [name, flags] of Object.entries(builds)) compiled.push([name, await compile(source, flags)]);
  const lines = compiled.map(([name, { code }]) => `export const ${name} = '${code}';\n`);
  const described = await interfaceOf(exports, compiled[0][1]);
  writeChanged(
    file,
    `/** Made by scripts/build-wasm.ts from ${from}; don't edit. */\n${lines.join('')}\n${described}`,
  );
  const sizes = compiled.map(([name, { code }]) => `${name} ${Math.floor((code.length * 3) / 4)} bytes`);
  console.log(`${file}: ${sizes.join(', ')}`);
}
await writeStructs('cpu/generated/structs.ts', 'cpu/assembly');

for (const folder of ['connectors/parquet/generated/', 'dist/connectors/parquet/generated/']) {
  await mkdir(join(root, folder), { recursive: true });
  // Node must not take the script for an ES module.
  for (const [from, to = from] of [['parquet_wasm.js', 'parquet_wasm.cjs'], ['parquet_wasm_bg.wasm']])
    await copyFile(join(root, 'node_modules/parquet-wasm/node', from), join(root, folder, to));
}

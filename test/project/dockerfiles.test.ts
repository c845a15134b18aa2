/**
 * The Dockerfiles of examples: no lint problems, and the versions that the package asks for. The init script of
 * Databricks: run on made files.
 */
import { validate } from 'dockerfile-utils';
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const dockerfile = (folder: string) => readFileSync(join(root, 'examples', folder, 'Dockerfile'), 'utf8');

it.each(['serve', 'spark'])('the Dockerfile of examples/%s has no problems', (folder) => {
  expect(validate(dockerfile(folder))).toEqual([]);
});

describe('the Dockerfile of the server', () => {
  const text = dockerfile('serve');

  it('has two stages, and ends with a user without rights', () => {
    expect(text.match(/^FROM /gm)).toHaveLength(2);
    const last = text.slice(text.lastIndexOf('FROM '));
    expect(last.match(/^USER (.+)$/m)?.[1]).toBe('node');
    expect(last).not.toMatch(/^RUN /m);
  });

  it('installs a Fastify that the package takes, on a Node that the package takes', () => {
    const { peerDependencies, engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      readonly peerDependencies: Readonly<Record<string, string>>;
      readonly engines: { readonly node: string };
    };
    const major = / fastify@(\d+) /.exec(text)?.[1];
    expect(`^${major}.0.0`).toBe(peerDependencies.fastify);
    const node = Number(text.match(/^FROM node:(\d+)/m)?.[1]);
    expect(node).toBeGreaterThan(Number(engines.node.match(/(\d+)/)?.[1]));
  });
});

describe('the files for Spark', () => {
  const version = /<version>(\d.*)<\/version>/.exec(readFileSync(join(root, 'spark/pom.xml'), 'utf8'))?.[1];

  it('the image has a tested version of Spark, the jar of this version, and a user without rights', () => {
    const text = dockerfile('spark');
    const spark = /^FROM apache\/spark:([\d.]+)-/m.exec(text)?.[1];
    expect(existsSync(join(root, `test/spark/requirements-${spark}.txt`))).toBe(true);
    expect(text).toContain(`factorflow-spark-${version}.jar`);
    expect(text.trimEnd().endsWith('USER spark')).toBe(true);
  });

  const script = join(root, 'examples/spark/databricks-init.sh');
  const run = (folder: string) =>
    spawnSync('sh', [script], {
      encoding: 'utf8',
      env: {
        PATH: process.env.PATH,
        FACTORFLOW_FILES: join(folder, 'files'),
        FACTORFLOW_HOME: join(folder, 'home'),
        FACTORFLOW_JARS: join(folder, 'jars'),
      },
    });
  const made = () => {
    const folder = mkdtempSync(join(tmpdir(), 'factorflow-databricks-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    for (const name of ['archive/bin', 'files']) mkdirSync(join(folder, name), { recursive: true });
    writeFileSync(join(folder, 'archive/bin/factorflow'), '#!/bin/sh\necho started "$@"\n');
    chmodSync(join(folder, 'archive/bin/factorflow'), 0o755);
    const archive = join(folder, `files/factorflow-${version}-linux-x64.tar.gz`);
    expect(spawnSync('tar', ['-czf', archive, '-C', join(folder, 'archive'), 'bin']).status).toBe(0);
    return folder;
  };

  it('the init script of Databricks unpacks the archive, copies the jar, and starts the command', () => {
    const folder = made();
    const jar = `factorflow-spark-3.5_2.12-${version}.jar`;
    writeFileSync(join(folder, 'files', jar), 'jar');
    expect(run(folder)).toMatchObject({ status: 0, stdout: 'started --version\n', stderr: '' });
    expect(readFileSync(join(folder, 'jars', jar), 'utf8')).toBe('jar');
  });

  it('the init script of Databricks names a file that is missing', () => {
    const { status, stderr } = run(made());
    expect(status).toBe(2);
    expect(stderr).toMatch(/need one file .*factorflow-spark-3\.5_2\.12-\*\.jar/);
  });
});

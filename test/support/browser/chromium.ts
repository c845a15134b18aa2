/**
 * The headless Chromium of the package @sparticuz/chromium, unpacked to build/chromium with the libraries and
 * the font of the package. Of the system it needs glibc and libgcc alone, and no root, display or GPU. It
 * takes no page on its command line, only the DevTools protocol.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { DevTools } from './dev-tools.ts';
import { makeFolder, packed, unpackTar } from './unpack-chromium.ts';

const folder = resolve(import.meta.dirname, '../../../build/chromium');
const program = join(folder, 'chromium');
const vulkan = join(folder, 'vk_swiftshader_icd.json');

const flags = [
  '--no-sandbox',
  '--single-process',
  '--no-zygote',
  '--disable-dev-shm-usage',
  '--hide-scrollbars',
  '--remote-debugging-pipe',
];

const withoutGpu = ['--disable-gpu', '--disable-software-rasterizer'];
/** Gives pages WebGPU on SwiftShader, which computes on the processor. */
const softwareGpu = [
  '--in-process-gpu',
  '--enable-unsafe-webgpu',
  '--use-webgpu-adapter=swiftshader',
  '--enable-features=Vulkan',
  '--use-vulkan=swiftshader',
];

export interface View {
  /** Size in CSS pixels. */
  readonly width: number;
  readonly height: number;
  readonly dark?: boolean;
}

/** The reason why Chromium does not run on this machine, or undefined after it is unpacked. */
export function prepareChromium(): string | undefined {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    return `Chromium is unpacked on Linux x64 only, not on ${process.platform} ${process.arch}`;
  }
  try {
    if (!existsSync(program) || !existsSync(vulkan)) makeFolder(folder, unpack);
  } catch (error) {
    return `Chromium could not be unpacked: ${error instanceof Error ? error.message : String(error)}`;
  }
  const { status, stdout, stderr, error } = spawnSync('ldd', [program], {
    env: environment(),
    encoding: 'utf8',
  });
  if (error !== undefined || status !== 0) return `Chromium cannot be linked: ${error?.message ?? stderr}`;
  const missing = stdout.split('\n').filter((line) => line.includes('not found'));
  return missing.length === 0 ? undefined : `Chromium lacks libraries of the system: ${missing.join(', ')}`;
}

function unpack(fresh: string): void {
  writeFileSync(join(fresh, 'chromium'), packed('chromium.br'));
  chmodSync(join(fresh, 'chromium'), 0o755);
  unpackTar('al2023.tar.br', fresh);
  unpackTar('fonts.tar.br', fresh);
  unpackTar('swiftshader.tar.br', fresh);
  // Fonts of the system are left out: pages look the same on any machine.
  const [fonts, cache] = [join(folder, 'fonts'), join(folder, 'fonts-cache')];
  writeFileSync(
    join(fresh, 'fonts.conf'),
    `<fontconfig><dir>${fonts}</dir><cachedir>${cache}</cachedir></fontconfig>\n`,
  );
}

function environment(): Record<string, string> {
  return {
    HOME: folder,
    PATH: process.env.PATH ?? '/usr/bin:/bin',
    LD_LIBRARY_PATH: `${join(folder, 'lib')}:${folder}`,
    VK_ICD_FILENAMES: vulkan,
    FONTCONFIG_PATH: folder,
  };
}

/** A browser with one page. */
export class Chromium {
  readonly #child: ChildProcess;
  readonly #tools: DevTools;
  readonly #session: string;
  readonly #profile: string;

  private constructor(child: ChildProcess, tools: DevTools, session: string, profile: string) {
    this.#child = child;
    this.#tools = tools;
    this.#session = session;
    this.#profile = profile;
  }

  /** Starts the browser; `prepareChromium` must have returned no reason. `webGpu`: see softwareGpu. */
  static async open({ webGpu = false } = {}): Promise<Chromium> {
    const profile = mkdtempSync(join(tmpdir(), 'factorflow-browser-'));
    mkdirSync(join(profile, 'data'));
    const given = [...flags, ...(webGpu ? softwareGpu : withoutGpu)];
    const child = spawn(program, [...given, `--user-data-dir=${join(profile, 'data')}`, 'about:blank'], {
      env: environment(),
      stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
    });
    const tools = new DevTools(child);
    const { targetId } = await tools.send<{ targetId: string }>('Target.createTarget', {
      url: 'about:blank',
    });
    const { sessionId } = await tools.send<{ sessionId: string }>('Target.attachToTarget', {
      targetId,
      flatten: true,
    });
    for (const domain of ['Page', 'Log', 'Runtime']) await tools.send(`${domain}.enable`, {}, sessionId);
    return new Chromium(child, tools, sessionId, profile);
  }

  /** Loads an address; resolves after its load event. */
  async show(url: string, view: View): Promise<void> {
    await this.resize(view);
    const loaded = this.#tools.once('Page.loadEventFired');
    const { errorText } = await this.#send<{ errorText?: string }>('Page.navigate', { url });
    if (errorText !== undefined) throw new Error(`${url}: ${errorText}`);
    await loaded;
  }

  /** Changes the size and the color scheme of the view. */
  async resize({ width, height, dark = false }: View): Promise<void> {
    const features = [{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }];
    await this.#send('Emulation.setDeviceMetricsOverride', {
      width,
      height,
      deviceScaleFactor: 1,
      mobile: false,
    });
    await this.#send('Emulation.setEmulatedMedia', { features });
  }

  /** The value of an expression in the page; it must be JSON. */
  async value<T>(expression: string): Promise<T> {
    const asked = { expression, returnByValue: true, awaitPromise: true };
    const { result, exceptionDetails } = await this.#send<Evaluated<T>>('Runtime.evaluate', asked);
    if (exceptionDetails !== undefined) throw new Error(`${expression}: ${exceptionDetails.text}`);
    return result.value;
  }

  /** Moves the mouse to a point of the view. */
  async pointAt(x: number, y: number): Promise<void> {
    await this.#send('Input.dispatchMouseEvent', { type: 'mouseMoved', x, y });
  }

  /** Types text where the focus is. */
  async type(text: string): Promise<void> {
    await this.#send('Input.insertText', { text });
  }

  /** Presses and releases a key, such as Enter or ArrowDown. */
  async press(key: string): Promise<void> {
    const text = key === 'Enter' ? '\r' : key === ' ' ? ' ' : undefined;
    const windowsVirtualKeyCode = { Enter: 13, Tab: 9, ' ': 32, Escape: 27, ArrowUp: 38, ArrowDown: 40 }[key];
    const about = { key, code: key === ' ' ? 'Space' : key, windowsVirtualKeyCode };
    await this.#send('Input.dispatchKeyEvent', { type: text ? 'keyDown' : 'rawKeyDown', text, ...about });
    await this.#send('Input.dispatchKeyEvent', { type: 'keyUp', ...about });
  }

  /** A picture of the view as PNG. */
  async picture(): Promise<Buffer> {
    const { data } = await this.#send<{ data: string }>('Page.captureScreenshot', { format: 'png' });
    return Buffer.from(data, 'base64');
  }

  /** Errors and refusals that the browser has logged since it was opened. */
  get complaints(): readonly string[] {
    return this.#tools.complaints;
  }

  async close(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once('close', resolve));
    this.#child.kill('SIGKILL');
    await ended;
    rmSync(this.#profile, { recursive: true, force: true });
  }

  #send<T>(method: string, params: object): Promise<T> {
    return this.#tools.send<T>(method, params, this.#session);
  }
}

interface Evaluated<T> {
  readonly result: { readonly value: T };
  readonly exceptionDetails?: { readonly text: string };
}

/** Rails on Puma: a Rack program as others are, with more to install. */
import { startPuma } from './puma.js';
import type { Scope } from './scope.js';

/** A `config.ru` of one application: what its `routes.append` is given, and its controllers. */
export function railsProgram(routes: string, controllers: string): string {
  return `
require 'action_controller/railtie'

class Service < Rails::Application
  config.eager_load = true
  config.secret_key_base = 'none'
  config.hosts.clear
  config.logger = Logger.new(nil)
  routes.append do
${routes}
  end
end

${controllers}
Service.initialize!
run Service
`;
}

/** Runs a `config.ru` with this text, with 16 threads. */
export async function startRails(t: Scope, text: string, env: Readonly<Record<string, string>>): Promise<number> {
  return startPuma(t, text, env);
}

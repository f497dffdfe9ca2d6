/** Routers that take more to install, with the same two routes. */
import { startGo } from '../support/go.js';
import { railsProgram, startRails } from '../support/rails.js';
import type { Router } from './routers.js';

const rails = railsProgram(
  `    get '/orders/desk', to: 'orders#desk'
    get '/orders/:id', to: 'orders#order'`,
  `class OrdersController < ActionController::API
  def desk
    response.headers['X-Ran'] = 'desk'
    render plain: 'desk'
  end
  def order
    render plain: 'order'
  end
end
`,
);

const go = `package main

import (
	"net/http"
	"os"
)

func main() {
	http.HandleFunc("/orders/desk", func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X-Ran", "desk") })
	http.HandleFunc("/orders/", func(w http.ResponseWriter, r *http.Request) {})
	http.ListenAndServe(os.Args[1], nil)
}
`;

export const largeRouters: readonly Router[] = [
  {
    name: 'Rails',
    folds: ['strict_slash', 'format_suffix', 'head_as_get'],
    start: async (t) => startRails(t, rails, {}),
  },
  { name: 'Go', folds: ['head_as_get'], start: async (t) => startGo(t, go, {}) },
];

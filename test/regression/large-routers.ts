/** Routers that take more to install, with the same two routes. */
import { startGo } from '../support/go.js';
import { startAspNet } from '../support/mono.js';
import { railsProgram, startRails } from '../support/rails.js';
import { startSpring } from '../support/spring.js';
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

const spring = `import java.net.InetSocketAddress;
import javax.servlet.http.HttpServletResponse;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestMethod;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.support.XmlWebApplicationContext;
import org.springframework.web.servlet.DispatcherServlet;

public class Service {
    @RestController
    public static class Orders {
        @RequestMapping(value = "/orders/desk", method = RequestMethod.GET)
        public String desk(HttpServletResponse response) {
            response.setHeader("X-Ran", "desk");
            return "desk";
        }

        @RequestMapping(value = "/orders/{id}", method = RequestMethod.GET)
        public String order(@PathVariable("id") String id) {
            return "order";
        }
    }

    public static void main(String[] args) throws Exception {
        XmlWebApplicationContext context = new XmlWebApplicationContext();
        context.setConfigLocation(args[1]);
        ServletContextHandler handler = new ServletContextHandler();
        handler.addServlet(new ServletHolder(new DispatcherServlet(context)), "/");
        String[] address = args[0].split(":");
        Server server = new Server(new InetSocketAddress(address[0], Integer.parseInt(address[1])));
        server.setHandler(handler);
        server.start();
    }
}
`;

const springSettings = (mvc: string): string =>
  `
<beans xmlns="http://www.springframework.org/schema/beans" xmlns:mvc="http://www.springframework.org/schema/mvc"
       xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
       xsi:schemaLocation="http://www.springframework.org/schema/beans
                           http://www.springframework.org/schema/beans/spring-beans.xsd
                           http://www.springframework.org/schema/mvc
                           http://www.springframework.org/schema/mvc/spring-mvc.xsd">
  ${mvc}
  <bean class="Service$Orders"/>
</beans>
`.trimStart();

/** What was its default before 4.3 (CVE-2016-5007). */
const springTrims = `<mvc:annotation-driven><mvc:path-matching path-matcher="matcher"/></mvc:annotation-driven>
  <bean id="matcher" class="org.springframework.util.AntPathMatcher"><property name="trimTokens" value="true"/></bean>`;

const aspNet = `
using System.Web;
using System.Web.Mvc;
using System.Web.Routing;

public class OrdersController : Controller
{
    public ActionResult Desk()
    {
        Response.AppendHeader("X-Ran", "desk");
        return Content("desk");
    }

    public ActionResult Order(string id)
    {
        return Content("order");
    }
}

public class Service : HttpApplication
{
    protected void Application_Start()
    {
        RouteTable.Routes.MapRoute("desk", "orders/desk", new { controller = "Orders", action = "Desk" });
        RouteTable.Routes.MapRoute("order", "orders/{id}", new { controller = "Orders", action = "Order" });
    }
}
`;

export const largeRouters: readonly Router[] = [
  {
    name: 'Rails',
    folds: ['strict_slash', 'format_suffix', 'head_as_get'],
    start: async (t) => startRails(t, rails, {}),
  },
  { name: 'Go', folds: ['head_as_get'], start: async (t) => startGo(t, go, {}) },
  {
    name: 'Spring 4.3',
    folds: ['strict_slash', 'format_suffix', 'trailing_dots', 'head_as_get'],
    start: async (t) => startSpring(t, spring, springSettings('<mvc:annotation-driven/>')),
  },
  {
    name: 'Spring that trims, as before 4.3',
    folds: ['strict_slash', 'format_suffix', 'trailing_dots', 'head_as_get'],
    start: async (t) => startSpring(t, spring, springSettings(springTrims)),
  },
  {
    name: 'ASP.NET MVC',
    folds: ['case_sensitive', 'strict_slash', 'head_as_get'],
    start: async (t) => startAspNet(t, aspNet),
  },
];

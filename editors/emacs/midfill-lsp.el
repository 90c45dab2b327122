;;; midfill-lsp.el --- midfill as a client of lsp-mode -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Where midfill runs as a client of lsp-mode, beside the others:
;;
;;     (with-eval-after-load 'lsp-mode
;;       (midfill-lsp-setup '(python-mode python-ts-mode)))
;;
;; For lsp-mode 8.0.0 and newer.

;;; Code:

(require 'cl-lib)
(require 'midfill-connection)
(require 'midfill-server)

(defvar lsp--cur-workspace)
(defvar lsp-language-id-configuration)
(declare-function lsp-workspaces "lsp-mode" ())
(declare-function lsp-notify "lsp-mode" (method params))
(declare-function lsp-request-async "lsp-mode" (method params callback &rest keys))
(declare-function lsp-cancel-request-by-token "lsp-mode" (token))
(declare-function lsp-workspace-restart "lsp-mode" (workspace))
(declare-function lsp-text-document-identifier "lsp-mode" ())
(declare-function lsp-register-client "lsp-mode" (client))
(declare-function lsp-stdio-connection "lsp-mode" (command &optional test))
(declare-function make-lsp-client "lsp-mode" (&rest slots))
(declare-function lsp--client-server-id "lsp-mode" (client))
(declare-function lsp--workspace-client "lsp-mode" (workspace))
(declare-function lsp--workspace-server-capabilities "lsp-mode" (workspace))

(cl-defstruct (midfill-lsp-connection (:copier nil))
  "A workspace of lsp-mode that is midfill's."
  workspace)

(defvar midfill-lsp--modes nil
  "Modes whose buffers are left to lsp-mode, once it runs in them.")

(defun midfill-lsp--plist (value)
  "VALUE, as lsp-mode has read it, with plists in place of hash tables."
  (cond ((hash-table-p value)
         (let (plist)
           (maphash (lambda (key each)
                      (setq plist (nconc plist (list (intern (concat ":" key)) (midfill-lsp--plist each)))))
                    value)
           plist))
        ((vectorp value) (vconcat (mapcar #'midfill-lsp--plist value)))
        (t value)))

(defun midfill-lsp--offer (workspace key)
  "What the server of WORKSPACE offers as KEY, and whether it does."
  (let ((capabilities (lsp--workspace-server-capabilities workspace)) (name (substring (symbol-name key) 1)))
    (if (hash-table-p capabilities)
        (list (midfill-lsp--plist (gethash name capabilities)) (not (eq (gethash name capabilities 'none) 'none)))
      (list (plist-get capabilities key) (and (plist-member capabilities key) t)))))

(defun midfill-lsp--midfill-p (workspace)
  "Whether the server of WORKSPACE is midfill."
  (and (cadr (midfill-lsp--offer workspace :inlineCompletionProvider))
       (midfill-connection-offers-p
        (list :inlineCompletionProvider t
              :executeCommandProvider (car (midfill-lsp--offer workspace :executeCommandProvider))))))

(defun midfill-lsp-connection ()
  "The workspace of midfill that the current buffer belongs to.
Give t if there is to be one, or nil."
  (when (bound-and-true-p lsp-mode)
    (let ((workspace (cl-find-if #'midfill-lsp--midfill-p (lsp-workspaces))))
      (if workspace
          (make-midfill-lsp-connection :workspace workspace)
        (and midfill-lsp--modes (apply #'derived-mode-p midfill-lsp--modes) t)))))

(add-hook 'midfill-connection-other-functions #'midfill-lsp-connection)

(defun midfill-lsp--no-menu (workspace)
  "Have WORKSPACE not be asked for its menu, which lsp-mode waits for.
The server offers one as lsp-mode has no way to say that it knows suggestions."
  (let ((capabilities (lsp--workspace-server-capabilities workspace)))
    (if (hash-table-p capabilities)
        (remhash "completionProvider" capabilities)
      (plist-put capabilities :completionProvider nil))))

;;;###autoload
(defun midfill-lsp-setup (modes &optional command)
  "Have lsp-mode start midfill beside other servers in MODES, a list.
COMMAND is a list of strings, by default that of midfill's own connection."
  (setq midfill-lsp--modes (append modes midfill-lsp--modes))
  (lsp-register-client
   (make-lsp-client
    :server-id 'midfill
    :add-on? t
    :multi-root t
    :major-modes modes
    :new-connection (lsp-stdio-connection
                     (lambda ()
                       (or command (midfill-server-find-command)
                           (user-error "Not installed; %s" (midfill-server-installation)))))
    ;; lsp-mode 8 counts columns in characters.
    :custom-capabilities '((general . ((positionEncodings . ["utf-32"]))))
    :initialization-options #'midfill-server-json-settings
    :initialized-fn #'midfill-lsp--no-menu)))

(defun midfill-lsp--method (method)
  "METHOD as lsp-mode has it."
  (substring (symbol-name method) 1))

(cl-defmethod midfill-connection-request ((connection midfill-lsp-connection) method params success &optional failure)
  "Ask CONNECTION for METHOD with PARAMS; then call SUCCESS or FAILURE."
  (let ((lsp--cur-workspace (midfill-lsp-connection-workspace connection))
        (token (make-symbol "midfill")))
    (with-demoted-errors "midfill: %S" ; its process may have ended
      (lsp-request-async (midfill-lsp--method method) params
                         (lambda (result) (funcall success (midfill-lsp--plist result)))
                         :error-handler (lambda (failed) (when failure (funcall failure (midfill-lsp--plist failed))))
                         :mode 'detached
                         :cancel-token token))
    (lambda ()
      (let ((lsp--cur-workspace (midfill-lsp-connection-workspace connection)))
        (lsp-cancel-request-by-token token)))))

(cl-defmethod midfill-connection-notify ((connection midfill-lsp-connection) method params)
  "Tell CONNECTION METHOD with PARAMS."
  (let ((lsp--cur-workspace (midfill-lsp-connection-workspace connection)))
    (with-demoted-errors "midfill: %S"
      (lsp-notify (midfill-lsp--method method) params))))

(cl-defmethod midfill-connection-sync ((connection midfill-lsp-connection))
  "The current buffer's URI and the unit of columns of CONNECTION.
Changes are sent as they are made."
  (let ((lsp--cur-workspace (midfill-lsp-connection-workspace connection)))
    (list (plist-get (lsp-text-document-identifier) :uri)
          (or (car (midfill-lsp--offer lsp--cur-workspace :positionEncoding)) "utf-16"))))

(cl-defmethod midfill-server-restart ((connection midfill-lsp-connection))
  "Start the server of CONNECTION anew."
  (lsp-workspace-restart (midfill-lsp-connection-workspace connection)))

(provide 'midfill-lsp)
;;; midfill-lsp.el ends here
